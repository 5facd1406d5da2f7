"""Checks a built book: `check_book.py SOURCES BOOK`. Internal links and their anchors lead somewhere, every source file is a
chapter, formulas came through whole, and no include was left undone."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

sources, book = map(pathlib.Path, sys.argv[1:])
problems = []


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.text, self.code = [], set(), [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.code += tag in ("code", "script", "style")
        if tag in ("em", "strong", "a"):
            self.text.append("\0")

    def handle_endtag(self, tag):
        self.code -= tag in ("code", "script", "style")

    def handle_data(self, data):
        if not self.code:
            self.text.append(data)


pages = {path.resolve(): Page(path.read_text()) for path in book.rglob("*.html")}
for path, page in pages.items():
    name = path.name
    if name in ("toc.html", "404.html"):
        continue
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        goal = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if not goal.exists():
            problems.append(f"{name}: `{link}` leads nowhere")
        elif parts.fragment and goal in pages and urllib.parse.unquote(parts.fragment) not in pages[goal].anchors:
            problems.append(f"{name}: `{link}` has no such anchor")
    if name == "print.html":
        continue
    text = "".join(page.text)
    for opening, closing in (r"\(", r"\)"), (r"\[", r"\]"):
        if text.count(opening) != text.count(closing):
            problems.append(f"{name}: {text.count(opening)} {opening} and {text.count(closing)} {closing}")
    if re.search(r"\\[(\[](?:(?!\\[)\]]).)*\0", text, re.DOTALL):
        problems.append(f"{name}: markup inside a formula")
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
