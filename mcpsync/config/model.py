"""What a config file says, typed: :class:`Config`, :class:`ServerConfig`, :class:`Policy`, :class:`Diagnostic`.

None of them shows a value of the file in its ``repr``: arguments, variables, headers and URLs hold secrets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from mcpsync.errors import ConfigError

__all__ = ["Config", "Diagnostic", "Policy", "ServerConfig"]


@dataclass(frozen=True)
class Diagnostic:
    """One remark about a config file.

    :ivar file: the file, None for a mapping given in memory
    :ivar path: where in it, as ``mcpServers.web.timeout``
    :ivar message: what is wrong and how to mend it; never a value of the file
    :ivar nearest: a known key that looks like the unknown one, if there is one
    :ivar severity: ``error`` (the server is not started), ``warning`` or ``note``
    :ivar server: the server concerned, if it is one
    :ivar line: the line of the file that it is about, from 1; None where there is none
    """

    file: Optional[str]
    path: str
    message: str
    nearest: Optional[str] = None
    severity: str = "error"
    server: Optional[str] = None
    line: Optional[int] = None

    def __str__(self) -> str:
        return "%s: %s" % (self.severity, self.as_error())

    def as_error(self) -> ConfigError:
        """The same as an error to raise or to keep."""
        return ConfigError(
            self.message, file=self.file, path=self.path, nearest=self.nearest, server=self.server, line=self.line
        )


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
    :ivar env_mode: which variables of this process the server gets beneath ``env``: ``safe``, ``inherit`` or ``none``;
        None: the caller's choice
    :ivar headers_command: a command line whose output is a JSON object of further headers; None: there is none
    :ivar protocol: ``auto``, ``legacy``, ``modern`` or a revision; None: the caller's choice
    :ivar keepalive: seconds between two signs of life, None for the default, 0 for none
    :ivar idle_disconnect: seconds without a call after which the connection is closed, None or 0: never
    :ivar max_lifetime: seconds after which the connection is made anew, None or 0: never
    :ivar supports_parallel: calls may run at the same time; else they queue
    :ivar skip_preflight: nothing is checked before it is started
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
    env_mode: Optional[str] = None
    headers_command: Optional[str] = None
    protocol: Optional[str] = None
    keepalive: Optional[float] = None
    idle_disconnect: Optional[float] = None
    max_lifetime: Optional[float] = None
    supports_parallel: bool = True
    skip_preflight: bool = False

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
class Policy:
    """What a config file says of safety, for all its servers.

    :ivar suspicious: what becomes of a tool whose texts look like an injection: ``block`` or ``warn``
        (``tools.mcpSecurityPolicy``)
    :ivar network: ``allow``, or ``deny``: servers with a URL are not started (``execution.networkPolicy``)
    :ivar profile: ``interactive``; ``daemon`` and ``public_gateway`` deny every tool that ``allow`` does not name
        (``tools.profile``)
    :ivar allow: names of tools that the profile lets through (``tools.allow``, ``tools.alsoAllow``)
    :ivar deny: names of tools that are never called (``tools.deny``)
    :ivar exclusive: the tools of ``allow`` are the only ones that there are: ``tools.allow`` is not empty
    :ivar approval: ``permissions.approval.mode`` as the file has it; empty where it says nothing
    :ivar elevated: ``permissions.elevated``: a ``public_gateway`` may start programs
    """

    suspicious: str = "block"
    network: str = "allow"
    profile: str = "interactive"
    allow: Tuple[str, ...] = ()
    deny: Tuple[str, ...] = ()
    exclusive: bool = False
    approval: str = ""
    elevated: bool = False


@dataclass(frozen=True)
class Config:
    """What a config file says.

    :ivar servers: by name, in the order of the file; those that are disabled or wrong are there too
    :ivar diagnostics: everything worth a remark, in the order of the file
    :ivar source: the file, None for a mapping given in memory
    :ivar policy: what it says of safety
    :ivar dialect: the name of its layout
    :ivar digest: SHA-256 of the file's bytes, in hex; empty for a mapping
    :ivar approved: its servers may be started: the caller named the file, or it was approved with this digest
    """

    servers: Mapping[str, ServerConfig]
    diagnostics: Tuple[Diagnostic, ...] = ()
    source: Optional[str] = None
    policy: Policy = Policy()
    dialect: str = ""
    digest: str = ""
    approved: bool = True
