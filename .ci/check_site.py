"""Checks the built site: `check_site.py SITE PICTURES`. Without Chromium (`check_site.py SITE`) only what can be read in its files.

Links and anchors of all pages lead somewhere in the site, pages load nothing from elsewhere, and none names the machine's folder; rustdoc checks its own pages,
here they are only led to. In a headless browser, at the widths of a desk and of a phone, pages of each kind say nothing on the console, lack nothing that they
ask for, and are no wider than the screen; what the first page has to say is in the first screenful, on a phone all but the picture and the reasons to
believe it. Before the site, broken twins of a small one (site_twins.py) have to fail.
"""

import pathlib
import sys
import tempfile
import time

from pages import dead_links, page_at
from site_twins import twins

#: Parts of the first page, by their ids: what has to be whole on the first screen.
ESSENTIAL = {"desk": ("what", "whom", "python", "command", "picture", "why"), "phone": ("what", "whom", "python", "command")}
#: Pages of rustdoc that are opened: the library's first, one of each kind.
RUST = ("reprior/index.html", "reprior/struct.Regression.html", "reprior/posterior/trait.Target.html", "reprior_run/index.html")
#: The working tree, which is nothing to readers of the site.
HERE = str(pathlib.Path(__file__).resolve().parent.parent)
#: Where the elements with an id begin and end, in pixels from the top.
PLACES = "Object.fromEntries([...document.querySelectorAll('[id]')].map(one => [one.id, one.getBoundingClientRect()]).map(([id, box]) => [id, [box.top, box.bottom]]))"


def own_pages(site):
    """All but rustdoc's, and the parts that mdBook makes for browsers without scripts."""
    return [path for path in sorted(site.rglob("*.html")) if path.relative_to(site).parts[0] != "rust" and path.name not in ("toc.html", "404.html")]


def kinds(pages):
    """Those that are opened: all but pages of experiments, and of reports, which check_report.py opens; of these the largest."""

    def kind(path):
        if path.parent.parent.name == "results":
            return "experiment"
        return "report" if 'name="generator" content="reprior' in path.read_text(encoding="utf-8") else path

    return sorted({kind(path): path for path in sorted(pages, key=lambda path: path.stat().st_size)}.values())


def read(site):
    """Problems that are in the files."""
    problems = []
    for path in own_pages(site):
        name = path.relative_to(site)
        problems += [f"{name}: {problem}" for problem in dead_links(path, site)]
        if HERE in path.read_text(encoding="utf-8"):
            problems.append(f"{name}: names the folder where it was made")
        problems += [f"{name}: loads {link}" for link in page_at(path).resources if "://" in link or link.startswith("//")]
    return problems


def first_screen(size, places, height):
    """What of the first page is not on the first screen."""
    for name in ESSENTIAL[size]:
        if name not in places:
            yield f"there is no #{name}"
        elif places[name][1] > height:
            yield f"#{name} ends at {places[name][1]:.0f} px, below the first {height}"


async def look(browser, site, pages, pictures=None):
    from browser import SIZES

    problems = []
    for size, (_, height) in SIZES.items():
        await browser.look(size)
        for path in pages:
            await browser.open(path.as_uri())
            found = [*browser.problems(site.as_uri()), *await browser.wider(size)]
            if path == site / "index.html":
                places = await browser.evaluate(PLACES)
                found += first_screen(size, places, height)
                if pictures is not None:
                    print(f"first page, {size}: " + ", ".join(f"{name} {places[name][0]:.0f}-{places[name][1]:.0f}" for name in ESSENTIAL["desk"] if name in places))
                    for scheme in ("light", "dark"):
                        await browser.look(size, scheme)
                        await browser.picture(size, pictures / f"first-{size}-{scheme}.png", whole=False)
                    await browser.look(size)
            problems += [f"{path.relative_to(site)} ({size}): {problem}" for problem in found]
    return problems


async def try_twins(browser):
    """Problems of the check itself: twins that pass, and a sound site that does not."""
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, site, phrase in twins(pathlib.Path(folder), HERE, browser is not None):
            found = read(site)
            if browser is not None:
                found += await look(browser, site, own_pages(site))
            if phrase is None:
                problems += [f"the sound twin fails: {problem}" for problem in found]
            elif not any(phrase in problem for problem in found):
                problems.append(f"a broken twin passes: {name}: {found}")
            count += 1
    print(f"twins of a small site: a sound one, and {count - 1} broken ones" + (" that are found" if not problems else ""))
    return problems


async def check(browser, site, pictures):
    problems = await try_twins(browser)
    start = time.monotonic()
    problems += read(site)
    pages = own_pages(site)
    links = sum(len(page_at(path).links) for path in pages)
    print(f"{len(pages)} pages with {links} links read in {time.monotonic() - start:.0f} s")
    if browser is not None:
        start = time.monotonic()
        pages = [*kinds(pages), *(site / "rust" / name for name in RUST)]
        problems += await look(browser, site, pages, pictures)
        print(f"{len(pages)} pages opened at two widths in {time.monotonic() - start:.0f} s")
    return problems


def main():
    site, *pictures = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
    if pictures:
        from browser import run

        pictures[0].mkdir(parents=True, exist_ok=True)
        problems = run(lambda browser: check(browser, site, pictures[0]))
    else:
        import asyncio

        problems = asyncio.run(check(None, site, None))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
