"""``headersHelper`` of a config file: a command line whose output is a JSON object of headers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import Callable, Dict, Optional, Tuple

from mcpsync.errors import ConnectFailed

__all__ = ["HeadersHelper"]

_SECONDS = 10.0
_KEPT = 60.0
_MOST_BYTES = 1 << 20


class HeadersHelper:
    """Gives headers by running a command line in a shell, and again when they are older than a minute.

    It runs with the environment of this process, and knows its server by ``CLAUDE_CODE_MCP_SERVER_NAME`` and
    ``CLAUDE_CODE_MCP_SERVER_URL``, as such commands expect. What it writes is never shown.

    :param command: for the shell
    :param server: the name of the server
    :param url: where it is
    :param seconds: that it may take
    """

    def __init__(
        self,
        command: str,
        server: str,
        url: str,
        *,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._server = server
        self._url = url
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()  # guards _last, and lets one run serve all who wait
        self._last: Optional[Tuple[float, Dict[str, str]]] = None

    def __call__(self) -> Dict[str, str]:
        """The headers.

        :raises ConnectFailed: the command failed, took too long, or wrote something else
        """
        with self._lock:
            if self._last is None or self._clock() - self._last[0] >= _KEPT:
                self._last = (self._clock(), self._run())
            return self._last[1]

    def _run(self) -> Dict[str, str]:
        known = {"CLAUDE_CODE_MCP_SERVER_NAME": self._server, "CLAUDE_CODE_MCP_SERVER_URL": self._url}
        try:
            process = subprocess.Popen(
                self._command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **known},
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise self._failure("cannot be run: %s" % error.strerror) from error
        try:
            output, _ = process.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            raise self._failure("took longer than %g s" % self._seconds) from None
        finally:
            _end(process)
        if process.returncode:
            raise self._failure("ended with code %d" % process.returncode)
        return self._headers(output)

    def _headers(self, output: bytes) -> Dict[str, str]:
        try:
            headers = json.loads(output) if len(output) <= _MOST_BYTES else None
        except (ValueError, RecursionError):
            headers = None
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            raise self._failure('wrote no JSON object of headers, as {"Authorization": "Bearer ..."}')
        return headers

    def _failure(self, why: str) -> ConnectFailed:
        return ConnectFailed("the command for its headers (headersHelper) %s" % why, server=self._server)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of it stays when its time is over. It is not reaped then, so its group is still its own."""
    if process.returncode is None:
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    if process.stdout is not None:
        process.stdout.close()
    process.wait()
