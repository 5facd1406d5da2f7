"""Opens reports in headless Chromium: `check_report.py PICTURES REPORT...`. Fails where one says something on the console, asks the
network for anything, is wider than the screen (phone and desk, light and dark), has a chart without guide, numbers or drawing, or a
label outside its drawing. Screenshots go to the folder PICTURES."""

import asyncio
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import websockets

SIZES = {"desk": (1280, 900), "phone": (390, 844)}

# what a reader would stumble over; measured in the page
LOOK = """(() => {
  const problems = [];
  if (!document.querySelector('article')) problems.push('no run in it');
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  if (wide > 0) problems.push(`the page is ${wide} px wider than the screen`);
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
  return JSON.stringify({problems, charts: document.querySelectorAll('figure.chart').length, height: document.documentElement.scrollHeight});
})()"""


class Browser:
    """The one page of a browser, by the DevTools protocol."""

    def __init__(self, socket):
        self.socket, self.count, self.events = socket, 0, []

    async def call(self, method, **parameters):
        self.count += 1
        number = self.count
        await self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self.socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    async def wait(self, event):
        while True:
            for index, message in enumerate(self.events):
                if message.get("method") == event:
                    return self.events[: index + 1]
            self.events.append(json.loads(await self.socket.recv()))


async def look(browser, report, size, scheme, picture):
    width, height = SIZES[size]
    phone = size == "phone"
    await browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
    await browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    await browser.call("Page.navigate", url=report.as_uri())
    await asyncio.wait_for(browser.wait("Page.loadEventFired"), 30)
    found = await browser.call("Runtime.evaluate", expression=LOOK)
    found = json.loads(found["result"]["value"])
    problems = list(found["problems"])
    for event in browser.events:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url != report.as_uri() and not url.startswith("data:"):
                problems.append(f"asks for {url}")
        elif method == "Log.entryAdded":
            problems.append(f"console: {parameters['entry']['text']}")
        elif method == "Runtime.consoleAPICalled":
            problems.append(f"console: {parameters['args']}")
        elif method == "Runtime.exceptionThrown":
            problems.append(f"exception: {parameters['exceptionDetails']}")
    # longer drawings than 16,384 pixels are not made
    area = {"x": 0, "y": 0, "width": width, "height": min(found["height"], 16000), "scale": 1}
    shot = await browser.call("Page.captureScreenshot", clip=area, captureBeyondViewport=True)
    picture.write_bytes(base64.b64decode(shot["data"]))
    return problems, found["charts"]


async def check(address, pictures, reports):
    problems = []
    async with websockets.connect(address, max_size=None) as socket:
        browser = Browser(socket)
        for domain in ("Page", "Network", "Log", "Runtime"):
            await browser.call(f"{domain}.enable")
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
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        sys.exit("no Chromium: install the package `chromium`, or name the program in CHROMIUM")
    # processes that Chromium leaves behind may still write there when it has ended
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"]
        arguments += ["--disable-component-update", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        arguments += ["--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as browser:
            try:
                address = next((line.split()[-1] for line in browser.stderr if line.startswith("DevTools listening on")), None)
                if address is None:
                    sys.exit("Chromium did not start")
                address = page_of(address)
                problems = asyncio.run(check(address, pictures, reports))
            finally:
                browser.terminate()
                browser.stderr.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


def page_of(address):
    """The address of the first page of a browser that listens at `address`."""
    import urllib.request

    host = address.split("/")[2]
    with urllib.request.urlopen(f"http://{host}/json") as answer:
        pages = [target for target in json.load(answer) if target["type"] == "page"]
    return pages[0]["webSocketDebuggerUrl"]


main()
