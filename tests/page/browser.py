"""A headless Chromium over its DevTools pipe; Python's standard library only.

Messages are JSON objects that end with a NUL byte: commands go to descriptor 3 of the browser, and
answers and events come from its descriptor 4.
"""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, patience=400):
        self.patience, self.count, self.rest, self.events = patience, 0, b"", []
        self.folder = tempfile.mkdtemp()
        there, here = os.pipe()
        back, answer = os.pipe()
        script = f'exec "$0" "$@" 3<&{there} 4>&{answer}'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
                 "--no-first-run", f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", script, program(), *flags], pass_fds=(there, answer),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(answer)
        self.to, self.back = here, back

    def close(self):
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, until):
        """The next message, or None when it is too late."""
        while b"\0" not in self.rest:
            ready = select.select([self.back], [], [], max(0, until - time.monotonic()))[0]
            part = os.read(self.back, 1 << 16) if ready else b""
            if not part:
                return None
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self.patience
        while answer := self.read(until):
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)
        raise RuntimeError(f"{method}: the browser does not answer")


class Page:
    """A page. `width` is in pixels, and `scheme` is "light" or "dark". The browser's events are kept
    from the creation of the page."""

    def __init__(self, browser, width, scheme):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media="screen", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.browser.events.clear()

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def open(self, path):
        self.url = "file://" + os.path.realpath(path)
        self.call("Page.navigate", url=self.url)
        for _ in range(600):
            if self.js("document.readyState === 'complete' && location.href !== 'about:blank'"):
                break
            time.sleep(0.05)
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def busy(self):
        """Seconds of processor time that the page's thread has used."""
        return next(m["value"] for m in self.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    def shot(self, path, height=None):
        import base64
        clip = {"clip": {"x": 0, "y": 0, "width": self.js("innerWidth"), "height": height, "scale": 1}} if height else {}
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=bool(height), **clip)["data"]))

    def complaints(self):
        """Returns the console messages, the exceptions, and the requests for anything except the
        page itself."""
        out = []
        for e in self.browser.events:
            method, p = e.get("method"), e.get("params", {})
            if e.get("sessionId") != self.session:
                continue
            if method == "Runtime.consoleAPICalled":
                out.append(f"console.{p['type']}: {p['args']}")
            elif method == "Runtime.exceptionThrown":
                out.append(f"exception: {p['exceptionDetails']}")
            elif method == "Log.entryAdded":
                out.append(f"log: {p['entry']['text']}")
            elif method == "Network.requestWillBeSent" and p["request"]["url"] != self.url:
                out.append(f"request: {p['request']['url']}")
        return out

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
