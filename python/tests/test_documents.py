"""The Python blocks of the README's first screen and of the book's page run as they stand."""

import os
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_page_of_names_is_that_of_the_docstrings():
    """Made by docs/python_api.py."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("python_api", ROOT / "docs" / "python_api.py")
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    assert own.PAGE.read_text(encoding="utf-8") == own.page(), "run python docs/python_api.py"


@pytest.mark.parametrize(("path", "chosen"), [("README.md", slice(1)), ("docs/src/python.md", slice(None))])
def test_blocks_run(path, chosen):
    found = blocks(path)[chosen]
    assert found and "reprior" in found[0]
    names, before = {}, Path.cwd()
    os.chdir(ROOT)
    try:
        for block in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(block, path, "exec"), names)
    finally:
        os.chdir(before)
