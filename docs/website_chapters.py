"""Chapters that the site's book has beyond the book: the papers' results, a notebook, the gallery."""

import base64
import html
import json
import re
import shutil

#: Verdicts of findings.json as the first page counts them.
VERDICTS = {"holds": "hold", "does-not-hold": "do not hold", "cannot-be-told": "cannot be told at the sizes that were run"}


def plain(text):
    """Text that Markdown leaves as it is, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>|$#~])", r"\\\1", " ".join(text.split()))


def experiments(folder):
    """What each experiment found, in the order of the ledger."""
    ledger = (folder / "README.md").read_text(encoding="utf-8")
    found = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/findings.json")}
    return dict(sorted(found.items(), key=lambda item: (ledger.find(f"]({item[0]})"), item[0])))


def tally(folder):
    """The ledger in a sentence."""
    verdicts = [finding["verdict"] for one in experiments(folder).values() for finding in one["findings"]]
    counts = [f"{verdicts.count(known)} {words}" for known, words in VERDICTS.items()]
    return (
        f"Of {len(verdicts)} claims, the papers' and its own, {counts[0]}, {counts[1]}, and {counts[2]}: "
        '<a href="book/results/index.html">the ledger</a> has each with its numbers.'
    )


def results(folder, out):
    """The chapters of docs/results, a page for every folder, and their lines of the summary."""
    shutil.copytree(folder, out)
    found = experiments(folder)
    (out / "README.md").rename(out / "index.md")
    for path in out.glob("*.md"):
        text = path.read_text(encoding="utf-8").replace("](../src/", "](../").replace("](README.md", "](index.md")
        path.write_text(re.sub(r"\]\(([\w.-]+)\)", lambda link: f"]({link[1]}/index.md)" if link[1] in found else link[0], text), encoding="utf-8")
    lines = ["- [Results](results/index.md)", "  - [Row by row](results/rows.md)"]
    for name, one in found.items():
        title = f"{one['paper']}, {one['figure']}" if one["figure"] else one["paper"]
        (out / name / "index.md").write_text(experiment(out / name, title, one), encoding="utf-8")
        lines.append(f"  - [{plain(title)}](results/{name}/index.md)")
    return lines


def experiment(folder, title, one):
    size = "" if one["size"] == "default" else f" --{one['size']}"
    data = " --data DIR" if one["data"] != "none" else ""
    published = " --as-published" if one["as_published"] else ""
    lines = [f"# {plain(title)}", "", f"`reprior reproduce {one['experiment']}{data}{size}{published}` makes these again.", ""]
    if one["findings"]:
        lines += ["| claim | published | here | verdict |", "|---|---|---|---|"]
        for finding in one["findings"]:
            because = f": {plain(finding['because'])}" if finding["because"] else ""
            lines.append(f"| {plain(finding['claim'])} | {plain(finding['published'] or '')} | {plain(finding['measured'])} | {finding['verdict'].replace('-', ' ')}{because} |")
        lines += ["", "[Readings](../index.md#readings) say what to make of it, and [verdicts](../../reproduce.md#verdicts) how they are come to.", ""]
    for picture in sorted(folder.glob("*.svg")):
        drawing = picture.read_text(encoding="utf-8")
        label = re.search(r'aria-label="([^"]*)"', drawing)
        guide = re.search(r"<desc>(.*?)</desc>", drawing, re.DOTALL)
        lines += [f"![{plain(html.unescape(label[1]) if label else picture.stem)}]({picture.name})", ""]
        lines += [plain(html.unescape(guide[1])), ""] if guide else []
    tables = sorted(path.name for path in folder.glob("*.csv"))
    lines.append("Numbers: " + ", ".join(f"[`{name}`]({name})" for name in [*tables, "findings.json"]) + ".")
    return "\n".join(lines) + "\n"


def fenced(text, language):
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def notebook(path, out):
    """A notebook as a chapter, with its outputs if it has any; its title."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    joined = lambda text: text if isinstance(text, str) else "".join(text)  # noqa: E731
    title = next(re.match(r"# (.*)", joined(cell["source"]))[1] for cell in cells if cell["cell_type"] == "markdown")
    parts, pictures = [], 0
    has_outputs = any(cell.get("outputs") for cell in cells)
    for cell in cells:
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(fenced(source, "python"))
        for output in cell["outputs"]:
            data = output.get("data", {})
            # text/html of frames and trees brings styles and scripts of its own
            said = joined(output["text"]) if output["output_type"] == "stream" else joined(data.get("text/plain", ""))
            # where a warning comes from, on the machine that ran it
            said = re.sub(r"/\S*/ipykernel_\d+/\d+\.py", "<cell>", said)
            if "image/png" in data:
                pictures += 1
                picture = f"{path.stem}-{pictures}.png"
                (out / picture).write_bytes(base64.b64decode(joined(data["image/png"])))
                parts.append(f"![{plain(said)}]({picture})")
            elif said.strip():
                parts.append(fenced(said, "text"))
    where = f"`examples/notebooks/{path.name}`" + ("" if has_outputs else ", shown without outputs: it was not run where this page was made")
    parts.insert(1, f"The notebook {where}.")
    (out / f"{path.stem}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return title


def thumbnail(page):
    """The first chart of a report as a picture of its own, in the report's light colours."""
    drawing = re.search("<svg.*?</svg>", page, re.DOTALL)[0]
    colours = re.search(r":root\{(.*?)\}", page)[1]
    return drawing.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" style="{colours};background:#fff;font-family:system-ui,sans-serif" ', 1)


def gallery(captions, pages, notebooks, out):
    """The chapter that leads to reports and notebooks, with a picture of each report."""
    lines = ["# Reports and notebooks", "", "## Reports", ""]
    lines += ["Of the runs of the README, as `reprior report RUN` writes them: [how to read one](../report.md). Each begins with its verdict.", ""]
    lines.append('<div class="cards">')
    for name, caption in captions.items():
        (out / f"{name}.svg").write_text(thumbnail(pages[name]), encoding="utf-8")
        said = re.findall(r'<div class="verdict \w+"><h2><span.*?</span></span>(.*?)</h2>', pages[name])
        verdict = f"<br><em>{said[0]}</em>" if len(said) == 1 else ""
        picture = f'<img src="{name}.svg" alt="the first chart of the report">'
        lines.append(f'<div><a href="{name}.html">{picture}</a><p><a href="{name}.html">{name}</a>: {html.escape(caption)}{verdict}</p></div>')
    lines.append("</div>")
    lines += ["", "## Notebooks", ""]
    lines += [f"* [{plain(title)}]({name}.md)" for name, title in notebooks.items()]
    (out / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
