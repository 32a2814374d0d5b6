"""A headless Chromium, driven by the WebDriver protocol (W3C) over plain HTTP. Needs only
Debian's chromium and chromium-driver. The browser is always ended at exit."""

import base64
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LIMIT_S = 60
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Backspace": "\ue003",
        "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015", "Shift": "\ue008",
        "Home": "\ue011", "Control": "\ue009"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing():
    """Why no browser can be used, or None."""
    if not CHROMIUM:
        return "chromium is not installed"
    if not DRIVER:
        return "chromedriver (Debian: chromium-driver) is not installed"
    return None


class Browser:
    def __init__(self, width=1280, height=860, arguments=(), requests=False):
        """requests: the log of them is kept."""
        self.home = tempfile.mkdtemp(prefix="stacksnap-browser-")
        self.driver = self.session = self.connection = None
        try:
            self._start(width, height, arguments, requests)
        except BaseException:
            self.close()
            raise

    def _start(self, width, height, arguments, requests):
        environment = dict(os.environ, HOME=self.home, XDG_CONFIG_HOME=self.home,
                           XDG_CACHE_HOME=self.home)
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
            environment.pop(name, None)
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, env=environment, bufsize=0,
                                       start_new_session=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", self._port(), LIMIT_S)
        options = {"binary": CHROMIUM, "args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--disable-crash-reporter", "--no-proxy-server",
            "--force-device-scale-factor=1", "--hide-scrollbars",
            "--user-data-dir=" + self.home + "/profile",
            "--window-size=%d,%d" % (width, height)] + list(arguments)}
        logs = {"browser": "ALL"}
        if requests:
            options["perfLoggingPrefs"] = {"enableNetwork": True}
            logs["performance"] = "ALL"
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": logs}}})
        self.session = answer["sessionId"]

    def _port(self):
        text = b""
        deadline = time.monotonic() + LIMIT_S
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.driver.stdout], [], [], left)[0]:
                raise AssertionError("chromedriver does not start: %r" % text)
            piece = self.driver.stdout.read(4096)
            text += piece
            found = re.search(rb"successfully on port (\d+)", text)
            if found:
                return int(found.group(1))
            if not piece:
                raise AssertionError("chromedriver ended: %r" % text)

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, data, {"Content-Type": "application/json"})
        # chromedriver sends an answer in two pieces, and the second waits for this acknowledgement
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        answer = self.connection.getresponse()
        value = json.loads(answer.read())["value"]
        if answer.status >= 400:
            raise AssertionError("%s %s: %s" % (method, path, value["message"]))
        return value

    def _do(self, method, path, body=None):
        return self._call(method, "/session/%s%s" % (self.session, path), body)

    def close(self):
        if self.session:
            try:
                self._call("DELETE", "/session/" + self.session)
            except (OSError, AssertionError, http.client.HTTPException):
                pass
            self.connection.close()
            self.session = None
        if self.driver:
            try:
                os.killpg(self.driver.pid, signal.SIGKILL)  # includes the browser
            except ProcessLookupError:
                pass
            self.driver.wait(LIMIT_S)
            self.driver.stdout.close()
            self.driver = None
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open(self, url):
        self._do("POST", "/url", {"url": url})

    def size(self, width, height):
        self._do("POST", "/window/rect", {"width": width, "height": height})

    def run(self, script, *arguments):
        """Runs a JavaScript function body and returns its value."""
        return self._do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, what, *arguments):
        """Waits until a JavaScript function body returns a true value, and returns it."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError("timed out waiting for: " + what)
            time.sleep(0.02)

    def settle(self):
        """Waits for an animation frame: after that, what was to be drawn is."""
        self._do("POST", "/execute/async", {"script": "const done = arguments[0];"
                 "requestAnimationFrame(() => setTimeout(() => done(1)))", "args": []})

    def element(self, selector):
        found = self._do("POST", "/element", {"using": "css selector", "value": selector})
        return found[ELEMENT]

    def text(self, selector):
        return self._do("GET", "/element/%s/text" % self.element(selector))

    def click(self, selector):
        self._do("POST", "/element/%s/click" % self.element(selector), {})
        self.settle()

    def type(self, selector, text):
        self._do("POST", "/element/%s/value" % self.element(selector), {"text": text})
        self.settle()

    def press(self, *keys, modifier=None):
        """Sends keys, by name or character, to the focused element."""
        actions = [{"type": "keyDown", "value": KEYS[modifier]}] if modifier else []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        actions += [{"type": "keyUp", "value": KEYS[modifier]}] if modifier else []
        self._do("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})
        self.settle()

    def mouse(self, *steps, kind="mouse", modifier=None):
        """Steps are ("move", x, y), ("down",) or ("up",), in pixels of the window. kind: or
        "touch". modifier: a key that is held down."""
        actions = []
        for step in steps:
            if step[0] == "move":
                actions.append({"type": "pointerMove", "duration": 0, "origin": "viewport",
                                "x": int(step[1]), "y": int(step[2])})
            else:
                actions.append({"type": "pointerDown" if step[0] == "down" else "pointerUp",
                                "button": 0})
        devices = [{"type": "pointer", "id": kind, "parameters": {"pointerType": kind},
                    "actions": actions}]
        if modifier:
            wait = [{"type": "pause"}] * len(actions)
            devices.insert(0, {"type": "key", "id": "keyboard", "actions": [
                {"type": "keyDown", "value": KEYS[modifier]}, *wait,
                {"type": "keyUp", "value": KEYS[modifier]}]})
            actions.insert(0, {"type": "pause"})
        self._do("POST", "/actions", {"actions": devices})
        self.settle()

    def wheel(self, x, y, by):
        self._do("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": int(x), "y": int(y), "deltaX": 0, "deltaY": by,
             "duration": 0, "origin": "viewport"}]}]})
        self.settle()

    def click_at(self, x, y):
        self.mouse(("move", x, y), ("down",), ("up",))

    def log(self, kind="browser"):
        return self._do("POST", "/se/log", {"type": kind})

    def requests(self):
        """The URLs requested since the last call, including that of the page."""
        found = []
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._do("GET", "/screenshot")))
