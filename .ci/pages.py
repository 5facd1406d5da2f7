"""Pages of a folder, their links and anchors: what the book's check and the site's have in common."""

import functools
import html.parser
import pathlib
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.resources, self.anchors, self.text, self.depth, self.marked = [], [], set(), [], {"code": 0, "math": 0}, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        links = [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.links += links
        # what a browser asks for by itself
        self.resources += links if tag not in ("a", "area") else []
        self.count(tag, 1)
        self.marked |= self.depth["math"] > 0 and tag in ("em", "strong", "a", "p")

    def handle_endtag(self, tag):
        self.count(tag, -1)

    def count(self, tag, by):
        kind = "code" if tag in ("code", "script", "style") else tag
        if kind in self.depth:
            self.depth[kind] += by

    def handle_data(self, data):
        if not self.depth["code"]:
            self.text.append(data)


@functools.cache
def page_at(path):
    return Page(path.read_text(encoding="utf-8"))


def dead_links(path, root=None):
    """What is wrong with the links of a page; with `root` they may not leave that folder."""
    for link in page_at(path).links:
        try:
            parts = urllib.parse.urlsplit(link)
        except ValueError:
            yield f"`{link}` is no address"
            continue
        if parts.scheme or parts.netloc:
            continue
        goal = pathlib.Path(path.parent, urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if parts.path.startswith("/") or (root is not None and not goal.is_relative_to(root)):
            yield f"`{link}` leads out of the folder"
        elif not goal.is_file():
            yield f"`{link}` leads nowhere"
        elif parts.fragment and goal.suffix == ".html" and urllib.parse.unquote(parts.fragment) not in page_at(goal).anchors:
            yield f"`{link}` has no such anchor"
