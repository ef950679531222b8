"""A headless Chromium that opens a page and says what it saw: messages, requests, images.

It talks the DevTools protocol over a pipe: no port is opened, nothing is installed, and the browser ends
itself when the pipe closes, also where the test process is killed. No name is resolved, so that no
page reaches the network, whatever it asks for: a server of a test listens at 127.0.0.1.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
PIPE = "import os, sys; os.dup2({0}, 3); os.dup2({1}, 4); os.execv(sys.argv[1], sys.argv[1:])"
"""The protocol's pipe is file descriptors 3 (to the browser) and 4 (from it)."""

PATIENCE = 60.0  # seconds after which a command to the browser is a fault
SETTLED = 0.15  # seconds without an event after which a loaded page counts as done
IMAGES = """
[...document.images].map(image => {
  const {x, width, height} = image.getBoundingClientRect();
  const drawing = new OffscreenCanvas(width, height).getContext("2d");
  drawing.drawImage(image, 0, 0, width, height);
  const pixels = new Uint32Array(drawing.getImageData(0, 0, width, height).data.buffer);
  return {alt: image.alt, x: x + scrollX, width, colours: new Set(pixels).size};
})
"""
CUT = """
[...document.querySelectorAll("main *")].filter(item =>
  item.scrollWidth > item.clientWidth + 1 && getComputedStyle(item).overflowX != "visible" && item.clientWidth
).map(item => `${item.tagName.toLowerCase()}.${item.className}: ${item.innerText.slice(0, 60)}`)
"""
CHANGED = """
new Promise((resolve, reject) => {{
  const look = () => {{
    const found = ({0});
    if (found) {{ watch.disconnect(); resolve(found); }}
  }};
  const watch = new MutationObserver(() => {{ try {{ look(); }} catch (error) {{ reject(error); }} }});
  const all = {{subtree: true, childList: true, attributes: true, characterData: true}};
  watch.observe(document, all);
  look();
}})
"""


class BrowserFault(RuntimeError):
    """The browser did not start, did not answer in time, or refused a command."""


@dataclass(frozen=True)
class Visit:
    """A page's doings and looks.

    Attributes:
        messages: Console messages, uncaught errors and the browser's own complaints (a refused
            request, a violated policy), each with its level.
        requests: URLs asked for besides the page itself and ``data:``.
        images: In the order of the page: ``alt``, ``x`` and ``width`` in CSS pixels, number of ``colours``.
        width: Of the page's content, in CSS pixels; more than the window's means that it scrolls sideways.
        cut: Elements that do not show their whole width, what can be scrolled included.
        text: As a reader sees it.
    """

    messages: list[str]
    requests: list[str]
    images: list[dict[str, Any]]
    width: int
    cut: list[str]
    text: str


def find_browser() -> str:
    """The path of a Chromium, or an empty text."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


class Browser:
    """A running browser; ``running_browser`` starts and ends one."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._ids = itertools.count(1)
        self._buffer = b""
        self._events: list[dict[str, Any]] = []

    def visit(self, page: Path, *, script: str = "", **looks: Any) -> Visit:
        """Open a file, run a script as if by a reader, and look at it; ``looks`` as ``tab``.

        Raises:
            BrowserFault: It took too long, or the browser is gone.
        """
        with self.tab(page.absolute().as_uri(), **looks) as tab:
            tab.run(script, waits=False)
            return tab.look()

    @contextmanager
    def tab(self, url: str, *, width: int = 1200, dark: bool = False) -> Iterator[Tab]:
        """Open an address in a tab, loaded and quiet.

        Args:
            width: Of the window, in CSS pixels.
            dark: The reader prefers dark colours.
        """
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        call = partial(self.call, session=session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            call(f"{domain}.enable")
        call("Page.setLifecycleEventsEnabled", enabled=True)
        tab = Tab(self, url, call)
        tab.looks(width, dark=dark)
        self._events.clear()
        loaded = {"loaderId": call("Page.navigate", url=url)["loaderId"], "name": "load"}
        until = time.monotonic() + PATIENCE
        while not any(loaded.items() <= each["params"].items() for each in self.seen("Page.lifecycleEvent")):
            self._events.append(self._receive(until))
        while event := self._receive(until, quiet=SETTLED):
            self._events.append(event)
        try:
            yield tab
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def until(self, method: str) -> dict[str, Any]:
        """Return the parameters of the next event of a method, which is not seen again."""
        while not (found := next(self.seen(method), None)):
            self._events.append(self._receive(time.monotonic() + PATIENCE))
        self._events.remove(found)
        parameters: dict[str, Any] = found["params"]
        return parameters

    def seen(self, method: str) -> Iterator[dict[str, Any]]:
        return (event for event in self._events if event.get("method") == method)

    def messages(self) -> Iterator[str]:
        for event in self.seen("Runtime.consoleAPICalled"):
            values = [arg.get("value", arg.get("description")) for arg in event["params"]["args"]]
            yield f"{event['params']['type']}: {' '.join(map(str, values))}"
        for event in self.seen("Runtime.exceptionThrown"):
            details = event["params"]["exceptionDetails"]
            yield f"error: {details.get('exception', {}).get('description', details['text'])}"
        for event in self.seen("Log.entryAdded"):
            entry = event["params"]["entry"]
            yield f"{entry['level']}: {entry['text']} {entry.get('url', '')}".rstrip()

    def call(self, method: str, *, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Return the browser's reply to a command; events that come meanwhile are kept."""
        number, until = next(self._ids), time.monotonic() + PATIENCE
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        try:
            os.write(self._writing, json.dumps(message).encode() + b"\0")
        except BrokenPipeError as error:
            raise BrowserFault("the browser is gone") from error
        while (reply := self._receive(until)).get("id") != number:
            self._events.append(reply)
        if "error" in reply:
            raise BrowserFault(f"{method}: {reply['error'].get('message')}")
        result: dict[str, Any] = reply["result"]
        return result

    def _receive(self, until: float, quiet: float = 0.0) -> dict[str, Any]:
        """The next message; empty if there is none for ``quiet`` seconds."""
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0:
                raise BrowserFault("the browser took too long")
            if select.select([self._reading], [], [], min(left, quiet or left))[0]:
                if not (data := os.read(self._reading, 1 << 20)):
                    raise BrowserFault("the browser is gone")
                self._buffer += data
            elif quiet:
                return {}
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


class Tab:
    """An open page, with which a test does what a reader does."""

    def __init__(self, browser: Browser, url: str, call: Callable[..., dict[str, Any]]) -> None:
        self._browser, self.url, self.call = browser, url, call

    def looks(self, width: int, *, dark: bool = False) -> None:
        """Change the window and what the reader prefers; the arguments are those of ``Browser.tab``."""
        window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **window)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, expression: str, *, waits: bool = True) -> Any:
        """Return the value of an expression, or of the promise that it is.

        Raises:
            BrowserFault: It threw.
        """
        how = {"expression": expression, "returnByValue": True, "awaitPromise": waits, "userGesture": True}
        done = self.call("Runtime.evaluate", **how)
        if waits and (thrown := done.get("exceptionDetails")):
            raise BrowserFault(str(thrown.get("exception", {}).get("description", thrown["text"])))
        return done["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Return an expression's value once it is true; it is looked at whenever the page changes.

        Raises:
            BrowserFault: It threw, or took too long; the message has what the page shows and said.
        """
        try:
            return self.run(CHANGED.format(expression))
        except BrowserFault as error:
            visit = self.look()
            raise BrowserFault(f"{expression}: {error}\n{visit.text}\n{visit.messages}") from error

    def press(self, key: str, *, ctrl: bool = False, shift: bool = False) -> None:
        """Press a key where the focus is."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32}
        how = {"key": key, "modifiers": 2 * ctrl + 8 * shift, "windowsVirtualKeyCode": codes.get(key, 0)}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        self.call("Input.dispatchKeyEvent", type="keyDown", **how, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **how)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def download(self, start: str, folder: Path) -> Path:
        """Run an expression that saves a file, and return that once it is there whole."""
        context = self.call("Target.getTargetInfo")["targetInfo"]["browserContextId"]
        how = {"behavior": "allow", "downloadPath": str(folder), "eventsEnabled": True}
        self._browser.call("Browser.setDownloadBehavior", browserContextId=context, **how)
        self.run(start)
        name = self._browser.until("Browser.downloadWillBegin")["suggestedFilename"]
        while self._browser.until("Browser.downloadProgress")["state"] != "completed":
            pass
        return folder / name

    def look(self) -> Visit:
        """Say what the page did and shows."""
        seen = self._browser.seen
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        asked = [event["params"]["request"]["url"] for event in seen("Network.requestWillBeSent")]
        return Visit(
            messages=list(self._browser.messages()),
            requests=[url for url in asked if url != self.url and not url.startswith("data:")],
            images=self.run(IMAGES),
            width=round(size["width"]),
            cut=self.run(CUT),
            text=self.run("document.body.innerText"),
        )


@contextmanager
def running_browser(path: str) -> Iterator[Browser]:
    """A browser of its own profile, which is killed with all its children at the end.

    Raises:
        BrowserFault: It does not start; the message has what it said.
    """
    (to_browser, writing), (reading, from_browser) = os.pipe(), os.pipe()
    with ExitStack() as stack:
        profile = stack.enter_context(
            TemporaryDirectory(prefix="quorum-browser-", ignore_cleanup_errors=True)
        )
        log = Path(profile, "said")
        said = stack.enter_context(log.open("wb"))
        start = (sys.executable, "-c", PIPE.format(to_browser, from_browser), path)
        process = subprocess.Popen(
            [*start, *OPTIONS, f"--user-data-dir={profile}/profile", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=os.environ | {"HOME": profile, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
            start_new_session=True,
        )
        stack.callback(process.wait)
        stack.callback(os.killpg, process.pid, signal.SIGKILL)
        for end in (writing, reading):
            stack.callback(os.close, end)
        for end in (to_browser, from_browser):
            os.close(end)
        browser = Browser(reading, writing)
        try:
            browser.call("Browser.getVersion")
        except BrowserFault as error:
            raise BrowserFault(f"{error}: {log.read_text(errors='replace')}") from error
        yield browser
