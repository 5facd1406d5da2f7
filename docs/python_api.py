"""Makes docs/src/python-api.md, the book's page of the Python package, out of its docstrings.

    python docs/python_api.py        (with the package and scikit-learn installed)
"""

import importlib
import inspect
import re
import typing
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "src" / "python-api.md"
HEAD = """# Names of the Python package

<!-- made by docs/python_api.py: change the docstrings -->

What each is for is told on [the page before](python.md). Rows come first in every array. Numbers are in the units of the data; logarithms of densities are in nats.
"""
#: Modules, and the names of each.
NAMES = {
    "reprior": ("BNNRegressor", "BNNClassifier", "sample", "open", "merge", "Run", "Progress", "Summary", "Verdict", "LeaveOneOut", "Prediction", "ClassPrediction", "sample_density", "Density", "RunError"),
    "reprior.torch": ("Laplace", "sample"),
    "reprior.distributed": ("sample", "sweep", "cross_validate", "shards", "ShardedDensity", "Sweep", "Point", "CrossValidation", "ChainsFailed"),
}


def text_of(thing: object) -> str:
    """A docstring as Markdown: its sections of parameters and attributes as lists."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r":(?:func|class|meth|mod):`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    lines, listed = [], False
    for line in text.splitlines():
        if re.fullmatch(r"-{3,}", line) and lines:
            lines[-1] = f"*{lines[-1]}*"
            lines.append("")
            listed = True
        elif listed and line and not line.startswith(" "):
            name, _, kind = line.partition(" :")
            # a section may end in text of its own
            listed = bool(kind) or " :" in line
            lines.append(f"* `{name}`{f' ({kind.strip()})' if kind.strip() else ''}:" if listed else line)
        elif listed and line.strip():
            lines.append("  " + line.strip())
        else:
            lines.append(line.replace("<", "&lt;") if "`" not in line else line)
    return "\n".join(lines)


def signature_of(name: str, thing: object) -> str:
    """A call, a parameter a line where it is long; without types, which the stubs have."""
    try:
        own = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in own.parameters.values() if one.name != "self"]
    short = f"{name}{own.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"
    if len(short) <= 100:
        return short
    inside = short[len(name) + 1 : -1]
    # a default may have commas of its own
    parts = re.split(r", (?=[\w*]+(?:[=,)]|$))", inside)
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def members_of(kind: type) -> list[tuple[str, object]]:
    """Methods and properties that the package itself has, in the order in which they are written."""
    found = {}
    for own in reversed(kind.__mro__):
        if own.__module__.startswith("reprior"):
            found.update(vars(own))
    is_told = lambda name, one: (not name.startswith("_") or name == "__call__") and (inspect.isfunction(one) or isinstance(one, property))  # noqa: E731
    return [(name, one) for name, one in found.items() if is_told(name, one) and inspect.getdoc(one)]


def entry(place: str, name: str) -> typing.Iterator[str]:
    thing = getattr(importlib.import_module(place), name)
    yield f"## {place}.{name}\n"
    is_called = not inspect.isclass(thing) or name in ("BNNRegressor", "BNNClassifier", "Laplace")
    if is_called:
        yield f"```text\n{signature_of(name, thing)}\n```\n"
    yield text_of(thing) + "\n"
    if inspect.isclass(thing):
        for member, one in members_of(thing):
            if isinstance(one, property):
                yield f"**`.{member}`**: {text_of(one)}\n"
            else:
                yield f"**`{signature_of('.' + member if member != '__call__' else '', one)}`**: {text_of(one)}\n"


def page() -> str:
    parts = [HEAD]
    for place, names in NAMES.items():
        for name in names:
            parts.extend(entry(place, name))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
