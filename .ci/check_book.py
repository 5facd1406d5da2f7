"""Checks a built book: `check_book.py SOURCES BOOK`. Internal links and their anchors lead somewhere, every source file is a
chapter, formulas came through whole, and no include was left undone."""

import pathlib
import re
import sys

from pages import dead_links, page_at

sources, book = map(pathlib.Path, sys.argv[1:])
problems = []

pages = sorted(path.resolve() for path in book.rglob("*.html"))
for path in pages:
    name = path.name
    if name in ("toc.html", "404.html"):
        continue
    problems += [f"{name}: {problem}" for problem in dead_links(path)]
    if name == "print.html":
        continue
    page = page_at(path)
    text = "".join(page.text)
    if page.marked or page.depth["math"]:
        problems.append(f"{name}: markup inside a formula, or one without end")
    if "$" in text:
        problems.append(f"{name}: a dollar sign in the text: {text[max(0, text.index('$') - 40):][:80]!r}")
    if "{{#" in text:
        problems.append(f"{name}: an include that was left undone")

if not pages:
    problems.append(f"{book} holds no pages")
chapters = set(re.findall(r"\]\(([^)]+\.md)\)", (sources / "SUMMARY.md").read_text()))
for path in sources.rglob("*.md"):
    relative = path.relative_to(sources).as_posix()
    if relative not in chapters | {"SUMMARY.md"} and not relative.startswith("tables/"):
        problems.append(f"{relative} is not in SUMMARY.md")

print("\n".join(problems) or f"{len(pages)} pages are well")
sys.exit(bool(problems))
