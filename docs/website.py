"""Puts the book, the interfaces, the papers' results, reports and notebooks into one static site: `python3 docs/website.py` makes target/site.

Needs cargo, and mdbook under target/tools/bin (the gate puts it there) or on the path. Links are relative, so that it can be hosted anywhere or opened from
disk. Reports are of the README's runs: those that the gate has made in target/readme; what is missing is made by the README's own command, and that takes
minutes. Notebooks are shown with their outputs where the gate has run them (target/notebooks).
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

from website_chapters import gallery, notebook, results, tally

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
RUNS = TARGET / "readme" / "runs"
NOTEBOOKS = TARGET / "notebooks"
#: Runs of the README, by the folders that its commands give them.
REPORTS = {
    "pendulum": "A table and no flags: what a first run gives.",
    "pendulum-noise": "The same table, a wider network, a noise that is fixed.",
    "pendulum-nngp": "The posterior of infinitely wide layers in closed form: no chains, the noise and the scales by evidence.",
    "strokes": "200 drawn images, ten classes.",
    "strokes-sgld": "2,000 of them by minibatches: Langevin dynamics with a quasi-diagonal preconditioner.",
    "strokes-laplace": "A Laplace approximation of the same.",
    "strokes-compared": "The last three side by side.",
}


def block(language):
    """The first block of a language in the README."""
    found = re.search(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"README.md has no block of {language}")
    return found[1].rstrip()


def program():
    built = [path for path in (TARGET / "release" / "reprior", TARGET / "debug" / "reprior") if path.exists()]
    if not built:
        subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True)
        return TARGET / "release" / "reprior"
    return max(built, key=lambda path: path.stat().st_mtime)


def report(name):
    """The page of a run of the README, which is made if it is not there. Where it was made is of no interest to readers."""
    page = RUNS / f"{name}.html" if "compared" in name else RUNS / name / "report.html"
    if not page.exists():
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        command = re.search(rf"^cargo run --release -- (.* --out runs/{name}(?:\.html)?)$", readme, re.MULTILINE)
        if command is None:
            sys.exit(f"README.md has no command that writes runs/{name}")
        print(f"making {name}, which target/readme does not have")
        RUNS.mkdir(parents=True, exist_ok=True)
        arguments = [re.sub("^runs/", f"{RUNS}/", one) for one in command[1].split()]
        if not (RUNS / name).exists():
            subprocess.run([program(), *arguments], cwd=ROOT, check=True)
        if not page.exists():
            subprocess.run([program(), "report", RUNS / name], cwd=ROOT, check=True)
    return page.read_text(encoding="utf-8").replace(f"{RUNS.parent}/", "").replace(f"{ROOT}/", "")


def book(out, work):
    """The book with chapters of its own for results, reports and notebooks, built from a copy of its sources."""
    shutil.copytree(DOCS, work, ignore=shutil.ignore_patterns("results", "website*", "__pycache__"))
    source = work / "src"
    for path in source.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("{{#include ../../", f"{{{{#include {ROOT}/"), encoding="utf-8")
    with (source / "introduction.md").open("a", encoding="utf-8") as introduction:
        introduction.write("\nThis book is part of a [site](../index.html), with reports, notebooks and the papers' results.\n")
    lines = ["", "# Gallery", ""]
    pages = {name: report(name) for name in REPORTS}
    (source / "gallery").mkdir()
    for name, page in pages.items():
        (source / "gallery" / f"{name}.html").write_text(page, encoding="utf-8")
    notebooks = {}
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        ran = NOTEBOOKS / path.name
        if not ran.exists():
            print(f"{path.name} is shown without outputs: target/notebooks does not have it")
        notebooks[path.stem] = notebook(ran if ran.exists() else path, source / "gallery")
    gallery(REPORTS, pages, notebooks, source / "gallery")
    lines.append("- [Reports and notebooks](gallery/index.md)")
    lines += [f"  - [{title}](gallery/{name}.md)" for name, title in notebooks.items()]
    lines += ["", "# The papers", ""] + results(DOCS / "results", source / "results")
    with (source / "SUMMARY.md").open("a", encoding="utf-8") as summary:
        summary.write("\n".join(lines) + "\n")
    found = TARGET / "tools" / "bin" / "mdbook"
    # one long page of everything would be longer than all the others together
    settings = os.environ | {"MDBOOK_OUTPUT__HTML__PRINT__ENABLE": "false", "MDBOOK_OUTPUT__HTML__FOLD__ENABLE": "true"}
    subprocess.run([found if found.exists() else "mdbook", "build", work, "--dest-dir", out], env=settings, check=True)


def first_page(out):
    text = (DOCS / "website" / "index.html").read_text(encoding="utf-8")
    with (ROOT / "Cargo.toml").open("rb") as manifest:
        version = tomllib.load(manifest)["workspace"]["package"]["version"]
    said = {"python": block("python"), "command": block("sh").replace(" --out", " \\\n  --out"), "version": version}
    for name, value in said.items():
        text = text.replace("{{" + name + "}}", html.escape(value, quote=False))
    (out / "index.html").write_text(text.replace("{{ledger}}", tally(DOCS / "results")), encoding="utf-8")
    shutil.copy(DOCS / "uncertainty.png", out)


def main():
    out, work = TARGET / "site", TARGET / "site-source"
    # as the gate documents it, so that nothing is made twice
    settings = os.environ | {"RUSTDOCFLAGS": "-D warnings"}
    subprocess.run(["cargo", "doc", "--quiet", "--workspace", "--no-deps"], cwd=ROOT, env=settings, check=True)
    for folder in (out, work):
        shutil.rmtree(folder, ignore_errors=True)
    out.mkdir(parents=True)
    book(out / "book", work)
    shutil.copytree(TARGET / "doc", out / "rust", ignore=shutil.ignore_patterns(".lock"))
    first_page(out)
    files = [path for path in out.rglob("*") if path.is_file()]
    print(f"{out}: {sum(path.suffix == '.html' for path in files)} pages, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
