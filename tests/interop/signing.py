"""A user's side of signing in: their store, their other processes, their terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

import requests

from mcpsync.auth.credentials import Credentials
from mcpsync.auth.store import FileStore
from tests.interop.chromium import Chromium, desktop
from tests.interop.http_peers import HttpPeer

PROCESS_SECONDS = 60.0
OPEN_PAGE = Path(__file__).with_name("open_page.py")
ANOTHER = """
import sys, mcpsync
with mcpsync.connect(sys.argv[1], auth=mcpsync.OAuth(interactive=False)) as client:
    print(client.call_tool(sys.argv[2]).text)
"""


class User:
    """Somebody with a home folder.

    :ivar store: what all their processes share
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.store = FileStore(str(home / "credentials"))

    def signed_in(self) -> List[Credentials]:
        """Wherever there are tokens for."""
        found = map(self.store.load, self.store.keys())
        return [each for each in found if each is not None and each.tokens is not None]

    def credentials(self) -> Credentials:
        """Of the only sign-in."""
        (found,) = self.signed_in()
        return found

    def another_process(self, url: str, tool: str) -> str:
        """What a process that cannot ask anybody gets from a tool."""
        done = self._run(["-c", ANOTHER, url, tool])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What ``mcpsync`` says on a machine without a browser."""
        return self._run(["-m", "mcpsync", *words])

    def command_on(self, chromium: Chromium, *words: str) -> subprocess.Popen[str]:
        """``mcpsync``, still running, on a desktop with that browser."""
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "mcpsync", *words],
            env=self._env(desktop(chromium, [sys.executable, str(OPEN_PAGE)])),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _run(self, arguments: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            env=self._env({}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROCESS_SECONDS,
            check=False,
        )

    def _env(self, more: Mapping[str, str]) -> Dict[str, str]:
        without = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "BROWSER")}
        return {**without, "MCPSYNC_HOME": str(self._home), **more}


def control(peer: HttpPeer, what: str) -> None:
    """Have something happen at the authorization server, see the servers' own descriptions."""
    _post(peer.url.rpartition("/")[0] + "/control/" + what, {}).raise_for_status()


def token_request(credentials: Credentials, form: Mapping[str, str]) -> requests.Response:
    """A request to the token endpoint that is not mcpsync's, of the same public client."""
    return _post(credentials.token_endpoint, {"client_id": credentials.identity.client_id, **form})


def _post(url: str, form: Mapping[str, str]) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.post(url, data=form, timeout=PROCESS_SECONDS)
