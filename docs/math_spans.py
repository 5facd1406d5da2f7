"""mdBook preprocessor: $…$ and $$…$$ become MathML.

Code blocks and code spans are left alone. A dollar sign that is meant as one is written \\$.
"""

import json
import re
import sys

from mathml import mathml

CODE = re.compile(r"(^(`{3,}|~{3,})[^\n]*\n.*?^\2[^\n]*$|(?<!`)(`+)(?!`).+?(?<!`)\3(?!`))", re.MULTILINE | re.DOTALL)
DISPLAY = re.compile(r"(?<!\\)\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$])\$(?![\s$])([^$]+?)(?<!\s)\$(?!\d)")


def convert(text):
    """Math spans of text without code."""
    text = DISPLAY.sub(lambda span: f'<span class="formula">{mathml(span[1], True)}</span>', text)
    return INLINE.sub(lambda span: mathml(span[1]), text)


def process(text):
    out, last = [], 0
    for code in CODE.finditer(text):
        out += [convert(text[last : code.start()]), code[0]]
        last = code.end()
    return "".join(out) + convert(text[last:])


def walk(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            try:
                item["Chapter"]["content"] = process(item["Chapter"]["content"])
            except ValueError as error:
                sys.exit(f"{item['Chapter']['name']}: {error}")
            walk(item["Chapter"]["sub_items"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2:] == ["html"] else 1)
    _, book = json.load(sys.stdin)
    walk(book.get("items", book.get("sections", [])))
    json.dump(book, sys.stdout)
