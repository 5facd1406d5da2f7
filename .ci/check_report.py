"""Opens reports in headless Chromium: `check_report.py PICTURES REPORT...`. Fails where one says something on the console, asks the
network for anything, is wider than the screen (phone and desk, light and dark), has a chart without guide, numbers or drawing, or a
label outside its drawing. Screenshots go to the folder PICTURES."""

import pathlib
import sys

from browser import SIZES, run

# what a reader would stumble over; measured in the page
LOOK = """(() => {
  const problems = [];
  if (!document.querySelector('article')) problems.push('no run in it');
  for (const figure of document.querySelectorAll('figure.chart')) {
    const title = figure.querySelector('h3')?.textContent || 'a chart without title';
    if (!figure.querySelector('figcaption')?.textContent) problems.push(`${title}: no guide`);
    if (!figure.querySelector('details tbody tr') && !figure.querySelector('svg')?.textContent.includes('no data'))
      problems.push(`${title}: no numbers`);
    const svg = figure.querySelector('svg');
    if (!svg) { problems.push(`${title}: no drawing`); continue; }
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
        problems.push(`${title}: "${text.textContent}" is cut off`);
    }
    if (svg.innerHTML.includes('NaN')) problems.push(`${title}: NaN in the drawing`);
  }
  for (const image of document.images) if (!image.naturalWidth) problems.push(`an image is broken: ${image.alt}`);
  return {problems, charts: document.querySelectorAll('figure.chart').length};
})()"""


async def look(browser, report, size, scheme, picture):
    await browser.look(size, scheme)
    await browser.open(report.as_uri())
    found = await browser.evaluate(LOOK)
    problems = found["problems"] + list(browser.problems(report.as_uri())) + await browser.wider(size)
    await browser.picture(size, picture)
    return problems, found["charts"]


async def check(browser, pictures, reports):
    problems = []
    for report in reports:
        name = report.parent.name if report.name == "report.html" else report.stem
        for size in SIZES:
            for scheme in ("light", "dark"):
                picture = pictures / f"{name}-{size}-{scheme}.png"
                found, charts = await look(browser, report, size, scheme, picture)
                problems += [f"{report} ({size}, {scheme}): {problem}" for problem in found]
        print(f"{report}: {charts} charts")
    return problems


def main():
    pictures, *reports = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
    pictures.mkdir(parents=True, exist_ok=True)
    problems = run(lambda page: check(page, pictures, reports))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
