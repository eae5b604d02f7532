"""What a stdio transport is told: the server to start, its surroundings, and the bounds of the connection."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mcpsync.errors import ConnectFailed
from mcpsync.transport.command import Launch, checked_command, prepare
from mcpsync.transport.environment import MODES, server_environment
from mcpsync.transport.masking import Mask

__all__ = ["DEFAULT_LIMIT", "Graces", "Prepared", "ServerCommand"]

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Bytes: the default for the longest message, and for what may wait to be sent."""


class Graces(NamedTuple):
    """How long a server is waited for, step by step, in seconds. A close with a short deadline takes shares of it.

    :ivar flush: for frames that still wait to be written
    :ivar eof: to end by itself after its stdin was closed
    :ivar linger: for what it started to end after it, before it is told to
    :ivar term: to end after SIGTERM
    :ivar silence: to tell its exit code after it closed its stdout or stdin
    """

    flush: float = 0.25
    eof: float = 2.0
    linger: float = 0.5
    term: float = 2.0
    silence: float = 1.0


class Prepared(NamedTuple):
    """All that is needed to start the server now."""

    launch: Launch
    environ: Dict[str, str]
    cwd: Optional[str]
    mask: Mask

    def __repr__(self) -> str:
        return "Prepared(%r, %d variables)" % (self.launch.program, len(self.environ))  # no values: they may be secrets


class ServerCommand:
    """A server's command with its environment; looked up anew for each start, since both may change meanwhile.

    :raises ValueError: ``env_mode`` is none of ``safe``, ``inherit``, ``none``
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Optional[Mapping[str, str]],
        env_mode: str,
        cwd: Optional[Any],
        path_prepend: Sequence[str],
        server: str,
    ) -> None:
        if env_mode not in MODES:
            raise ValueError("env_mode must be one of %s, not %r" % (", ".join(MODES), env_mode))
        self._command = command if isinstance(command, (str, bytes)) else tuple(command)
        self._env: Dict[Any, Any] = dict(env or {})
        self._env_mode = env_mode
        self._cwd = cwd
        self._path_prepend: Tuple[str, ...] = tuple(map(os.fspath, path_prepend))
        self._server = server

    def prepare(self) -> Prepared:
        """Check everything and find the program.

        :raises ConnectFailed: the server cannot be started like this; the message says what is wrong
        """
        command = checked_command(self._command, self._server)
        environ = server_environment(self._env_mode, self._checked_env())
        if self._path_prepend:
            environ["PATH"] = os.pathsep.join([*self._path_prepend, environ.get("PATH", os.defpath)])
        cwd = self._checked_cwd()
        launch = prepare(command, environ, cwd, self._server)
        return Prepared(launch, environ, cwd, Mask(environ, command))

    def __repr__(self) -> str:
        return "ServerCommand(%s)" % self._shown()

    def _shown(self) -> str:
        words: List[str] = [part for part in self._command if isinstance(part, str)]
        return Mask({}, words).command(words)

    def _checked_env(self) -> Dict[str, str]:
        for name, value in self._env.items():
            if not isinstance(name, str) or not isinstance(value, str):
                kind = type(value).__name__ if isinstance(name, str) else "named by a " + type(name).__name__
                raise ConnectFailed(
                    "environment variable %r must be a string, not %s" % (name, kind),
                    server=self._server,
                    permanent=True,
                )
            if not name or "=" in name or "\0" in name:
                raise ConnectFailed(
                    "%r cannot be the name of an environment variable" % name, server=self._server, permanent=True
                )
            if "\0" in value:
                raise ConnectFailed(
                    "the value of environment variable %r contains a NUL character" % name,
                    server=self._server,
                    permanent=True,
                )
        return self._env

    def _checked_cwd(self) -> Optional[str]:
        if self._cwd is None:
            return None
        try:
            cwd = os.fspath(self._cwd)
        except TypeError:
            cwd = None
        if not isinstance(cwd, str) or "\0" in cwd or not cwd:
            raise ConnectFailed(
                "the working directory must be a path, not %r" % (self._cwd,), server=self._server, permanent=True
            )
        return cwd
