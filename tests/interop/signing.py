"""A user's side of signing in: their store, their other processes, their terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Set

import requests

from mcpsync.auth.credentials import Credentials
from mcpsync.auth.store import FileStore
from tests.interop.chromium import Chromium, desktop
from tests.interop.http_peers import HttpPeer

PROCESS_SECONDS = 120.0
OPEN_PAGE = Path(__file__).with_name("open_page.py")
ANOTHER = """
import sys, mcpsync
with mcpsync.connect(sys.argv[1], auth=mcpsync.OAuth(interactive=False)) as client:
    print(client.call_tool(sys.argv[2]).text)
"""
MANY = """
import sys, threading, mcpsync
over, said = threading.Event(), set()
def work():
    while not over.is_set():
        try:
            said.add(client.call_tool(sys.argv[2]).text)
        except mcpsync.McpError as error:
            said.add(repr(error))
with mcpsync.connect(sys.argv[1], auth=mcpsync.OAuth(interactive=False)) as client:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
print("\\n".join(said))
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

    @contextmanager
    def processes(self, number: int, url: str, tool: str) -> Iterator[Set[str]]:
        """Processes of four threads each that call a tool all the time; at the end, all the different answers."""
        said: Set[str] = set()
        with ExitStack() as stack:
            running = [stack.enter_context(self._popen(["-c", MANY, url, tool], {})) for _ in range(number)]
            for process in running:
                stack.callback(process.kill)
            yield said
            for process in running:
                out, err = process.communicate("", timeout=PROCESS_SECONDS)
                assert process.returncode == 0, err
                said.update(out.splitlines())

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What ``mcpsync`` says on a machine without a browser."""
        return self._run(["-m", "mcpsync", *words])

    @contextmanager
    def terminal(self, *words: str, chromium: Optional[Chromium] = None) -> Iterator[subprocess.Popen[str]]:
        """``mcpsync``, still running; on a desktop with that browser, if any."""
        env = {} if chromium is None else desktop(chromium, [sys.executable, str(OPEN_PAGE)])
        with self._popen(["-m", "mcpsync", *words], env) as process:
            try:
                yield process
            finally:
                process.kill()

    def _popen(self, arguments: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", *arguments],
            env=self._env(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        with self._popen(arguments, {}) as process:
            try:
                out, err = process.communicate("", timeout=PROCESS_SECONDS)
            finally:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

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
