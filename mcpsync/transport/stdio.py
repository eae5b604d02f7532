"""The stdio transport of this platform."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from mcpsync.transport.stdio_windows import WindowsStdio as StdioTransport
else:
    from mcpsync.transport.stdio_posix import PosixStdio as StdioTransport

__all__ = ["StdioTransport"]
