"""Real servers over HTTP on 127.0.0.1: started, asked what they counted, started again on the same port."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections import Counter, deque
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import mcpsync
from mcpsync.deadline import Deadline
from tests.interop.peers import SERVERS

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LISTENS = re.compile(r"(http://127\.0\.0\.1:\d+\S*)|(?:listening|running) on port")
THREADS, CALLS = 8, 25


class HttpPeer:
    """A server's process.

    :param command: what starts it
    :param env: variables beside those of this process
    :param url: where it listens, if it does not say so itself
    :ivar url: where it listens
    """

    def __init__(self, command: Sequence[str], env: Optional[Mapping[str, str]] = None, url: str = "") -> None:
        self._command = list(command)
        self._env = {**os.environ, **(env or {})}
        self.url = url
        self._start(self._command)

    def __enter__(self) -> HttpPeer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _start(self, command: Sequence[str]) -> None:
        self._rest: Optional[threading.Thread] = None
        # What it prints goes into a file, but for the stream that tells when it listens.
        self._printed = tempfile.NamedTemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed in stop
        tells_on_stderr = bool(self.url) and "--port" not in command
        self._process = subprocess.Popen(
            command,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=self._printed if tells_on_stderr else subprocess.PIPE,
            stderr=subprocess.PIPE if tells_on_stderr else self._printed,
            text=True,
        )
        told = self._process.stderr if tells_on_stderr else self._process.stdout
        assert told is not None
        self._told = told
        late = threading.Timer(START_SECONDS, self._process.kill)
        late.start()
        try:
            line = next((line for line in told if LISTENS.search(line)), None)
        finally:
            late.cancel()
            late.join()
        if line is None:
            printed = self.printed()
            self.stop()
            raise AssertionError("%s did not start: %s" % (command, printed[-2000:]))
        found = LISTENS.search(line)
        assert found is not None
        self.url = found.group(1) or self.url
        self._rest = threading.Thread(target=deque, args=(told, 0))  # reads on, so that the server is never held up
        self._rest.start()

    def stop(self) -> None:
        """End it, at once and without a word to its clients."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        if self._rest is not None:
            self._rest.join()
        self._told.close()
        self._printed.close()

    def restart(self) -> None:
        """End it and start it again on the same port; it knows nothing of what was before."""
        port = self.url.partition("127.0.0.1:")[2].partition("/")[0]
        own = not any("server-everything" in part for part in self._command)
        self.stop()
        self._start([*self._command, "--port", port] if own else self._command)

    def printed(self) -> str:
        """What it has printed so far."""
        return Path(self._printed.name).read_text(encoding="utf-8", errors="replace")

    def counts(self, what: str) -> Dict[str, int]:
        """``requests``: how often each method came; ``executed``: how often ``tally`` ran for each mark."""
        address = self.url.rpartition("/")[0] + "/counts"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, timeout=STOP_SECONDS) as response:
            counted: Dict[str, int] = json.load(response)[what]
        return counted


def python_peer(command: Sequence[str], *flags: str) -> HttpPeer:
    """``servers/http_server.py`` with the server that such a stdio command starts."""
    python, script = command
    peer = Path(script).name.partition("_server")[0]
    return HttpPeer([python, str(SERVERS / "http_server.py"), peer, *flags])


def node_peer(everything_command: Sequence[str], *flags: str) -> HttpPeer:
    """``servers/node2_server.cjs``; its packages are beside those of server-everything."""
    node, script = everything_command
    packages = Path(script).parents[3]
    return HttpPeer([node, str(SERVERS / "node2_server.cjs"), *flags], {"NODE_PATH": str(packages)})


def everything_peer(command: Sequence[str], mode: str, path: str) -> HttpPeer:
    """server-everything in one of its modes over HTTP."""
    port = free_port()
    return HttpPeer([*command, mode], {"PORT": str(port)}, "http://127.0.0.1:%d%s" % (port, path))


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def by_many_threads(client: mcpsync.Client, call: Callable[[str], Any], mark: str) -> List[str]:
    """``THREADS`` threads make ``CALLS`` calls each, one mark a call; gives the marks, once all were right.

    :param call: with a mark; raises if the answer is not the right one
    """
    marks = [["%s-%d-%d" % (mark, thread, number) for number in range(CALLS)] for thread in range(THREADS)]
    wrong: List[str] = []

    def work(mine: Sequence[str]) -> None:
        for each in mine:
            try:
                call(each)
            except (mcpsync.McpError, AssertionError) as error:
                wrong.append("%s: %r" % (each, error))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in marks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    return [mark for mine in marks for mark in mine]


def each_once(peer: HttpPeer, marks: Sequence[str]) -> None:
    """Assert that the server executed the ``tally`` of each of these marks exactly once."""
    executed = peer.counts("executed")
    assert Counter({mark: executed.get(mark, 0) for mark in marks}) == Counter(marks)


def cancelled_there(client: mcpsync.Client, marks: Sequence[str], seconds: float = 20.0) -> bool:
    """Whether the server writes down that these ``slow`` calls were cancelled; it may do so a moment later."""
    deadline = Deadline(seconds)
    while not deadline.expired:
        if set(marks) <= set(client.call_tool("cancellations").structured["result"]):
            return True
        time.sleep(0.01)  # the server gives no event to wait for
    return False
