"""A headless Chromium by the DevTools protocol: `run(work)` starts one and hands its page to `work`. `CHROMIUM` names the program."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import websockets

SIZES = {"desk": (1280, 900), "phone": (390, 844)}


class Browser:
    """The one page of a browser."""

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

    async def look(self, size, scheme="light"):
        """From now on pages are this large, in the light or in the dark."""
        width, height = SIZES[size]
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=size == "phone")
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def open(self, url):
        self.events.clear()
        await self.call("Page.navigate", url=url)
        await asyncio.wait_for(self.wait("Page.loadEventFired"), 30)

    async def evaluate(self, expression):
        found = await self.call("Runtime.evaluate", expression=f"JSON.stringify({expression})")
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return json.loads(found["result"]["value"])

    def problems(self, inside):
        """What the page said on the console, what it asked for that is not `inside` (the beginning of an address), and what did not come."""
        asked = {}
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent":
                url = asked[parameters["requestId"]] = parameters["request"]["url"]
                if not url.startswith((inside, "data:")):
                    yield f"asks for {url}"
            elif method == "Network.loadingFailed":
                yield f"{asked.get(parameters['requestId'], 'something')} did not come: {parameters['errorText']}"
            elif method == "Log.entryAdded":
                yield f"console: {parameters['entry']['text']}"
            elif method == "Runtime.consoleAPICalled":
                yield f"console: {parameters['args']}"
            elif method == "Runtime.exceptionThrown":
                yield f"exception: {parameters['exceptionDetails']}"

    async def wider(self, size):
        """By how much the page is wider than the screen: a list of no problem or one."""
        # not window.innerWidth, which grows with the page on phones
        by = await self.evaluate("document.documentElement.scrollWidth") - SIZES[size][0]
        return [f"the page is {by} px wider than the screen"] if by > 0 else []

    async def picture(self, size, path, whole=True):
        """A screenshot of the whole page, or of its first screenful."""
        width, height = SIZES[size]
        if whole:
            # longer drawings than 16,384 pixels are not made
            height = min(await self.evaluate("document.documentElement.scrollHeight"), 16000)
        area = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = await self.call("Page.captureScreenshot", clip=area, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


async def connected(address, work):
    async with websockets.connect(address, max_size=None) as socket:
        browser = Browser(socket)
        for domain in ("Page", "Network", "Log", "Runtime"):
            await browser.call(f"{domain}.enable")
        return await work(browser)


def page_of(address):
    """The address of the first page of a browser that listens at `address`."""
    host = address.split("/")[2]
    with urllib.request.urlopen(f"http://{host}/json") as answer:
        pages = [target for target in json.load(answer) if target["type"] == "page"]
    return pages[0]["webSocketDebuggerUrl"]


def run(work):
    """What `work(browser)` returns."""
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
                return asyncio.run(connected(page_of(address), work))
            finally:
                browser.terminate()
                browser.stderr.close()
