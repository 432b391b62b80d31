"""Debian's chromium without a window, spoken to by its DevTools protocol; nothing is downloaded."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from websockets.sync.client import ClientConnection, connect

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
AXE: Final = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"

MISSING: Final = (
    "no chromium is installed (apt-get install chromium)"
    if CHROMIUM is None
    else ""
    if AXE.exists()
    else "axe-core is not installed (npm ci)"
)
"""Why no page can be looked at here; empty where one can."""

WAIT_S: Final = 120.0


class BrowserPage:
    """One page of a browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number = socket, 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One call of the protocol; what it answers."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            found = json.loads(self._socket.recv(timeout=WAIT_S))
            if found.get("id") == self._number:
                assert "error" not in found, (method, found["error"])
                return dict(found["result"])

    def look(self, width: int, dark: bool) -> None:
        """The window's width in pixels of CSS, and which colours are preferred."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[colours])

    def open(self, url: str) -> None:
        """Goes to an address and waits until the page is there."""
        self.call("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression, or what a promise gives."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, seconds: float = WAIT_S) -> None:
        """Waits until an expression is true."""
        wait_for(lambda: self.run(script) is True, seconds, script)

    def press(self, key: str) -> None:
        """A key goes down and up."""
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9, "ArrowRight": 39, "Enter": 13}[key]
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the page as it is shown now."""
        self.run(AXE.read_text() + "; 0")
        found = self.run(
            "axe.run(document).then((all) => all.violations.map("
            "(v) => v.id + ': ' + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 150)).join(' | ')))"
        )
        return list(found)

    def picture(self, path: Path) -> None:
        """Writes what is seen as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


def wait_for(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Looks until something is so. Fails after some seconds."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not so after {seconds} s: {what}"
        time.sleep(0.05)


@contextmanager
def browser_page(folder: Path) -> Iterator[BrowserPage]:
    """A page of a browser of its own, whose profile is in a folder; both end with the block."""
    assert CHROMIUM is not None
    port = folder / "DevToolsActivePort"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
    browser = subprocess.Popen(
        [CHROMIUM, *options, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: port.exists() and len(port.read_text().split()) > 1, WAIT_S, "chromium listens")
        base = f"http://127.0.0.1:{port.read_text().split()[0]}"
        with urllib.request.urlopen(f"{base}/json/list", timeout=WAIT_S) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        with connect(pages[0]["webSocketDebuggerUrl"], max_size=64 << 20) as socket:
            yield BrowserPage(socket)
    finally:
        browser.terminate()
        browser.wait(timeout=WAIT_S)
