"""A person with a browser: Chromium without a window, led over the WebDriver protocol.

Every look for something on a page waits for it to be there, ``FOUND_SECONDS`` at most. WebDriver does one thing at a
time, so it waits with many short looks: other processes show pages here meanwhile.

Specification: W3C WebDriver; ``goog/cdp`` is Chromium's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from typing import Any, Callable, Dict, Sequence

import requests

from mcpsync.deadline import Deadline

FOUND_SECONDS = 60.0
ANSWER_SECONDS = 60.0
STOP_SECONDS = 10.0
_READY = "was started successfully on port "
_NOTHING_ELSE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # some pages want fonts of elsewhere
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Chromium:
    """A browser with one page.

    :param chromium: path of the program
    :param driver: path of its chromedriver
    :ivar session: URL of the WebDriver session: whoever has it can show pages
    """

    def __init__(self, chromium: str, driver: str) -> None:
        self._http = requests.Session()
        self._http.trust_env = False  # no proxy between here and here
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        self._driver = subprocess.Popen(
            [driver, "--port=0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "HOME": self._folder},
        )
        assert self._driver.stdout is not None
        line = next((line for line in self._driver.stdout if _READY in line), None)
        assert line is not None, "chromedriver ended before it listened"
        self._rest = threading.Thread(target=deque, args=(self._driver.stdout, 0))
        self._rest.start()
        self.session = "http://127.0.0.1:%s/session" % line.partition(_READY)[2].strip(" .\n")
        arguments = [
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-proxy-server",
            "--no-first-run",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses it to root
        wanted = {
            "browserName": "chrome",
            "pageLoadStrategy": "eager",
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
        }
        try:
            made = self._ask("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self._end()
            raise
        self.session += "/" + made["sessionId"]
        self.version = str(made["capabilities"]["browserVersion"])

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        try:
            self._ask("DELETE", "")
        finally:
            self._end()

    def _end(self) -> None:
        self._driver.terminate()
        self._driver.wait(STOP_SECONDS)
        self._rest.join()
        assert self._driver.stdout is not None
        self._driver.stdout.close()
        self._http.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # its last processes may still write

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(
            method, self.session + path, json=body if method == "POST" else None, timeout=ANSWER_SECONDS
        )
        value = answer.json()["value"]
        if not answer.ok:
            raise AssertionError("%s %s: %s: %s" % (method, path, value.get("error"), value.get("message", "")[:500]))
        return value

    # -- what a person does ------------------------------------------------------------------------------------

    def show(self, url: str) -> None:
        """Go to a page."""
        self._ask("POST", "/url", {"url": url})

    def press(self, label: str) -> None:
        """Press the button, or follow the link, that says so."""
        named = "[contains(normalize-space(), '%s')]" % label
        self._ask("POST", "/element/%s/click" % self._find("//button%s | //a%s" % (named, named)), {})

    def fill(self, field: str, text: str) -> None:
        """Write into a field of a form."""
        self._ask("POST", "/element/%s/value" % self._find("//input[@name='%s']" % field), {"text": text})

    def sees(self, text: str) -> str:
        """Wait until the page shows that; gives the page's address."""
        self._find("//body//*[contains(text(), '%s')]" % text)
        return str(self._ask("GET", "/url"))

    def ends_at(self, start: str) -> str:
        """Wait until the address begins so; gives it, whether or not there is a page."""
        deadline = Deadline(FOUND_SECONDS)
        while not deadline.expired:
            address = str(self._ask("GET", "/url"))
            if address.startswith(start):
                return address
            time.sleep(0.02)
        raise AssertionError("it ended at %s" % address)

    def text(self) -> str:
        """All that the page shows."""
        return str(self._ask("GET", "/element/%s/text" % self._find("//body")))

    def close_page(self) -> None:
        """Close the page; an empty one is left."""
        other = self._ask("POST", "/window/new", {"type": "tab"})["handle"]
        self._ask("DELETE", "/window")
        self._ask("POST", "/window", {"handle": other})

    def forget(self) -> None:
        """Leave the page, and whoever was signed in anywhere."""
        self.show("about:blank")
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Network.clearBrowserCookies", "params": {}})

    def _find(self, xpath: str) -> str:
        deadline = Deadline(FOUND_SECONDS)
        while not deadline.expired:
            found = self._ask("POST", "/elements", {"using": "xpath", "value": xpath})
            if found:
                return str(found[0][_ELEMENT])
            time.sleep(0.02)  # a page gives no event to wait for
        raise AssertionError("there is no %s on this page: %s" % (xpath, self._ask("GET", "/source")[:2000]))


def opener(chromium: Chromium, *steps: Callable[[], Any]) -> Callable[[str], bool]:
    """What opens the browser, and then does these things in it."""

    def open_page(url: str) -> bool:
        chromium.show(url)
        for step in steps:
            step()
        return True

    return open_page


def desktop(chromium: Chromium, command: Sequence[str]) -> Dict[str, str]:
    """The environment of a desktop whose browser this is.

    :param command: of ``open_page.py``
    """
    return {"BROWSER": " ".join([*command, "%s"]), "MCPSYNC_TEST_BROWSER": chromium.session}
