"""The stdio connection of Windows."""

from __future__ import annotations

import sys

from mcpsync.transport.stdio_base import StdioBase
from mcpsync.transport.stdio_server import Prepared
from mcpsync.transport.stdio_threaded import EndableProcess, ThreadedStdio

assert sys.platform == "win32"

from mcpsync.transport.windows import JobProcess  # noqa: E402 (nothing of it exists elsewhere)

__all__ = ["WindowsStdio"]


class WindowsStdio(ThreadedStdio):
    __doc__ = StdioBase.__doc__

    def _start_process(self, prepared: Prepared, stdin: int, stdout: int, stderr: int) -> EndableProcess:
        return JobProcess(
            prepared.launch,
            prepared.environ,
            prepared.cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            server=self._server,
            mask=prepared.mask,
        )
