"""What a config file says, typed: :class:`Config`, :class:`ServerConfig`, :class:`Diagnostic`.

None of them shows a value of the file in its ``repr``: arguments, variables, headers and URLs hold secrets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from mcpsync.errors import ConfigError

__all__ = ["Config", "Diagnostic", "ServerConfig"]


@dataclass(frozen=True)
class Diagnostic:
    """One remark about a config file.

    :ivar file: the file, None for a mapping given in memory
    :ivar path: where in it, as ``mcpServers.web.timeout``
    :ivar message: what is wrong and how to mend it; never a value of the file
    :ivar nearest: a known key that looks like the unknown one, if there is one
    :ivar severity: ``error`` (the server is not started), ``warning`` or ``note``
    :ivar server: the server concerned, if it is one
    """

    file: Optional[str]
    path: str
    message: str
    nearest: Optional[str] = None
    severity: str = "error"
    server: Optional[str] = None

    def __str__(self) -> str:
        return "%s: %s" % (self.severity, self.as_error())

    def as_error(self) -> ConfigError:
        """The same as an error to raise or to keep."""
        return ConfigError(self.message, file=self.file, path=self.path, nearest=self.nearest, server=self.server)


@dataclass(frozen=True, repr=False)
class ServerConfig:
    """One server of a config file, variables expanded.

    :ivar name: as the file has it
    :ivar transport: ``stdio``; ``http`` (Streamable HTTP); ``sse`` (the deprecated HTTP+SSE);
        ``auto`` for a URL without a type: Streamable HTTP, then SSE; empty where the entry does not say
    :ivar command: the program and its arguments; empty for a URL server
    :ivar env: variables that are merged over those that the server gets anyway
    :ivar cwd: its working folder, None for that of this process
    :ivar url: for a URL server
    :ivar headers: sent with every HTTP request
    :ivar auth: options of :class:`~mcpsync.OAuth`, for a server that wants that somebody signs in; None: nobody does
    :ivar enabled: False if it is switched off, or if ``error`` is set
    :ivar timeout: seconds for a call, None for the default
    :ivar connect_timeout: seconds for connecting, None for the default
    :ivar tools_include: names or globs of its own tool names; empty for all
    :ivar tools_exclude: names or globs, taken away after ``tools_include``
    :ivar trust_level: ``untrusted`` or ``trusted``
    :ivar error: why it cannot be started, None if nothing is wrong with it
    """

    name: str
    transport: str = ""
    command: Tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Optional[str] = None
    url: Optional[str] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: Optional[Mapping[str, Any]] = None
    enabled: bool = True
    timeout: Optional[float] = None
    connect_timeout: Optional[float] = None
    tools_include: Tuple[str, ...] = ()
    tools_exclude: Tuple[str, ...] = ()
    trust_level: str = "untrusted"
    error: Optional[ConfigError] = None

    @property
    def target(self) -> str:
        """The program, or scheme and host of the URL: what can be shown of where it leads."""
        if self.url is not None:
            try:
                parts = urlsplit(self.url)
            except ValueError:  # a disabled entry may hold any text
                return ""
            if parts.scheme in ("unix", "http+unix"):
                return "%s://%s" % (parts.scheme, parts.netloc or parts.path)
            return "%s://%s" % (parts.scheme, parts.netloc.rpartition("@")[2])
        return self.command[0] if self.command else ""

    def __repr__(self) -> str:
        shown = ["%r" % self.name, self.transport or "unknown", "%r" % self.target]
        if len(self.command) > 1:
            shown.append("%d arguments" % (len(self.command) - 1))
        shown.extend(
            "%s=%r" % (what, sorted(names)) for what, names in (("env", self.env), ("headers", self.headers)) if names
        )
        if not self.enabled:
            shown.append("disabled" if self.error is None else "error=%r" % str(self.error))
        return "ServerConfig(%s)" % ", ".join(shown)


@dataclass(frozen=True)
class Config:
    """What a config file says.

    :ivar servers: by name, in the order of the file; those that are disabled or wrong are there too
    :ivar diagnostics: everything worth a remark, in the order of the file
    :ivar source: the file, None for a mapping given in memory
    """

    servers: Mapping[str, ServerConfig]
    diagnostics: Tuple[Diagnostic, ...] = ()
    source: Optional[str] = None
