"""What the exit codes mean, and which error ends with which."""

from __future__ import annotations

from typing import Dict

__all__ = [
    "INTERNAL",
    "INTERRUPTED",
    "MEANINGS",
    "NO_CONNECTION",
    "OK",
    "SERVER_ERROR",
    "TIMED_OUT",
    "TOOL_ERROR",
    "USAGE",
    "code_of",
]

OK = 0
TOOL_ERROR = 1
USAGE = 2
NO_CONNECTION = 3
SERVER_ERROR = 4
TIMED_OUT = 5
INTERNAL = 70
INTERRUPTED = 130

MEANINGS: Dict[int, str] = {
    OK: "all went well",
    TOOL_ERROR: "the tool reported an error (demo: something was not as it should be)",
    USAGE: "wrong arguments, or a wrong config file",
    NO_CONNECTION: "could not connect (in time), or the connection was lost",
    SERVER_ERROR: "the server answered with an error, or with something that is no answer",
    TIMED_OUT: "no answer in time",
    INTERNAL: "a fault of mcpsync itself: please report it",
    INTERRUPTED: "interrupted with Ctrl-C; the server was told",
}


def code_of(error: BaseException) -> int:
    """The exit code for an error."""
    from mcpsync import errors

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, errors.ToolError):
        return TOOL_ERROR
    if isinstance(error, (errors.ConfigError, errors.ArgumentsMismatch)):
        return USAGE
    if isinstance(error, (errors.TransportError, errors.VersionMismatch, errors.AuthError, errors.ClientClosed)):
        return NO_CONNECTION
    if isinstance(error, errors.RequestTimeout):
        return TIMED_OUT
    return SERVER_ERROR if isinstance(error, errors.McpError) else INTERNAL
