"""One server's entry to a :class:`~mcpsync.config.model.ServerConfig`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, TypeVar
from urllib.parse import urlsplit

from mcpsync.config.diagnose import Report, Where, kind, nearest
from mcpsync.config.dialects import MISNOMERS, TRANSPORTS, Dialect
from mcpsync.config.expand import bare_variable, expand
from mcpsync.config.model import ServerConfig
from mcpsync.config.signing import Remarks, read_auth
from mcpsync.errors import ConfigError

__all__ = ["read_server"]

_T = TypeVar("_T")

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HOUR = 3600.0
#: Fields in which an empty string says the same as no entry.
_MAY_BE_EMPTY = ("command", "url", "cwd", "transport", "type")
_SOCKET_SCHEMES = ("unix", "http+unix")
_STDIO_ONLY = ("args", "env", "cwd")
_SIGNING = "signing in is for a url only"
_HTTP_ONLY = {"headers": "headers are sent to a url only", "auth": _SIGNING, "oauth": _SIGNING}


def read_server(
    name: str,
    body: Any,
    where: Where,
    dialect: Dialect,
    switched_on: bool,
    environ: Mapping[str, str],
    report: Report,
) -> ServerConfig:
    """Read one server; whatever is wrong with it is reported, and kept as its ``error`` unless it is disabled."""
    entry = _Entry(name, where, dialect, environ, report)
    if not isinstance(body, Mapping):
        entry.wrong((), 'must be a map, as {"command": "npx", "args": ["-y", "a-server"]}, and is %s' % kind(body))
        return ServerConfig(name, enabled=False, error=entry.error)
    entry.take(body)
    enabled = switched_on and entry.flag("enabled", True) and not entry.flag("disabled", False)
    entry.enabled = enabled

    program = entry.command()
    url = entry.text("url") or None
    entry.check_completeness(bool(program), url is not None)
    headers = entry.text_map("headers", _header_problem)
    auth = None if url is None else entry.auth(headers)
    config = ServerConfig(
        name=name,
        transport=entry.transport(bool(program), url is not None),
        command=(*program, *entry.texts("args")) if program else (),
        env=entry.text_map("env", _variable_problem),
        cwd=entry.text("cwd") or None,
        url=entry.checked_url(url),
        headers=headers,
        auth=auth,
        enabled=enabled,
        timeout=entry.seconds("timeout", dialect.timeout, dialect.max_timeout),
        connect_timeout=entry.seconds("connect_timeout", dialect.connect_timeout, dialect.max_connect_timeout),
        tools_include=tuple(entry.texts("tools_include")),
        tools_exclude=tuple(entry.texts("tools_exclude")),
        trust_level=entry.choice("trust_level", ("untrusted", "trusted")),
    )
    if not enabled or entry.error is None:
        return config
    return replace(config, enabled=False, error=entry.error)


def _variable_problem(name: str, _: str) -> str:
    if not name or "=" in name or "\0" in name:
        return "is no name for an environment variable"
    return ""


def _header_problem(name: str, value: str) -> str:
    if not name or not name.isascii() or any(char in name for char in " \t\r\n\0:"):
        return "is no name for a header"
    return "contains a line break" if "\r" in value or "\n" in value else ""


class _Entry:
    """The fields of one server, read by type.

    Each reader returns a harmless value for a field that is absent or wrong, after reporting it, so that all
    that is wrong with a server is said at once.
    """

    def __init__(self, name: str, where: Where, dialect: Dialect, environ: Mapping[str, str], report: Report) -> None:
        self.enabled = True
        self.error: Optional[ConfigError] = None
        self._name = name
        self._where = where
        self._dialect = dialect
        self._environ = environ
        self._report = report
        self._fields: Dict[str, Tuple[str, Any]] = {}
        self._unknown: Dict[str, Optional[str]] = {}

    # -- what is there

    def take(self, body: Mapping[Any, Any]) -> None:
        """Sort the keys into fields, those that are read over, and unknown ones."""
        for key, value in body.items():
            if not isinstance(key, str):
                self.wrong((str(key),), "a key must be a string: put it in quotes")
                continue
            field = self._dialect.keys.get(key)
            if field is None:
                self._take_other(key)
            elif field in self._fields:
                self.wrong((key,), "says the same as %r: keep one of the two" % self._fields[field][0])
            elif value is not None and not (value == "" and field in _MAY_BE_EMPTY):
                self._fields[field] = (key, value)

    def _take_other(self, key: str) -> None:
        dialect = self._dialect
        if key in dialect.silent or key.startswith(("_", "//", "x-")):
            return
        if key in dialect.remarks:
            self._remark("note", (key,), dialect.remarks[key])
        elif key in dialect.unused:
            self._remark("warning", (key,), "is known, but not used by this version")
        else:
            self._unknown[key] = nearest(key, dialect.known(), MISNOMERS)
            self._remark("warning", (key,), "unknown key", self._unknown[key])

    # -- remarks

    def _remark(self, severity: str, inside: Where, message: str, near: Optional[str] = None) -> ConfigError:
        found = self._report.add(severity, (*self._where, *inside), message, nearest=near, server=self._name)
        return found.as_error()

    def wrong(self, inside: Where, message: str, near: Optional[str] = None) -> None:
        """Report what keeps the server from starting: the first such error is the one that it keeps."""
        error = self._remark("error" if self.enabled else "warning", inside, message, near)
        if self.error is None:
            self.error = error

    def check_completeness(self, has_command: bool, has_url: bool) -> None:
        """Exactly one of command and url; a disabled entry may have neither yet."""
        if has_command and has_url:
            self.wrong((), "has both 'command' and 'url': a server has exactly one of the two")
        elif not (has_command or has_url) and self.enabled and not self._fields.keys() & {"command", "url"}:
            meant = next(((key, near) for key, near in self._unknown.items() if near in ("command", "url")), None)
            hint = ": is %r meant to be %r?" % meant if meant else ""
            self.wrong((), "needs 'command' (a program to start) or 'url'" + hint)
        if has_command:
            for field, why in _HTTP_ONLY.items():
                if field in self._fields:
                    self._remark("warning", (self._key(field),), "is not used: %s" % why)
        if has_url and not has_command:
            for field in _STDIO_ONLY:
                if field in self._fields:
                    self._remark("warning", (self._key(field),), "is not used: it belongs to a 'command'")

    # -- readers

    def _key(self, field: str) -> str:
        return self._fields[field][0]

    def _typed(self, field: str, form: str, convert: Callable[[Any], Optional[_T]]) -> Optional[_T]:
        if field not in self._fields:
            return None
        key, value = self._fields[field]
        converted = convert(value)
        if converted is None:
            self.wrong((key,), "must be %s, and is %s" % (form, kind(value)))
        return converted

    def flag(self, field: str, default: bool) -> bool:
        """A boolean; in words too, since YAML 1.1 has them."""

        def convert(value: Any) -> Optional[bool]:
            return _WORDS.get(value.lower()) if isinstance(value, str) else value if isinstance(value, bool) else None

        found = self._typed(field, "true or false", convert)
        return default if found is None else found

    def seconds(self, field: str, default: Optional[float], limit: Optional[float]) -> Optional[float]:
        """A length of time in seconds, above 0 and at most ``limit``."""

        def convert(value: Any) -> Optional[float]:
            return None if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)

        try:
            found = self._typed(field, "a number of seconds, as 30", convert)
        except OverflowError:  # an integer beyond what a float can be
            found = math.inf
        if found is None:
            return default
        inside = (self._key(field),)
        if not 0 < found < math.inf:
            self.wrong(inside, "must be a number of seconds above 0")
        elif limit is not None and found > limit:
            self.wrong(inside, "must be at most %g seconds" % limit)
        elif found > _HOUR:
            self._remark("warning", inside, "is in seconds: %g s is more than an hour" % found)
        return found

    def choice(self, field: str, known: Tuple[str, ...]) -> str:
        """One of a few words; the first is the default."""
        form = "one of %s" % ", ".join(known)
        found = self._typed(field, form, lambda value: value if isinstance(value, str) else None)
        if found is None or found in known:
            return found or known[0]
        self.wrong((self._key(field),), "must be %s" % form)
        return known[0]

    def text(self, field: str) -> str:
        """A string, expanded."""
        found = self._typed(field, "a string", lambda value: value if isinstance(value, str) else None)
        return self._expanded(field, (self._key(field),), found) if found else ""

    def texts(self, field: str) -> List[str]:
        """A list of strings, expanded."""
        form = 'a list of strings, as ["one", "two"]'
        found = self._typed(field, form, lambda value: value if isinstance(value, (list, tuple)) else None)
        if found is None:
            return []
        key = self._key(field)
        return [self._scalar(field, (key, index), value) for index, value in enumerate(found)]

    def text_map(self, field: str, problem: Callable[[str, str], str]) -> Dict[str, str]:
        """A map of strings to strings, the values expanded and then checked."""
        form = 'a map, as {"NAME": "value"}'
        found = self._typed(field, form, lambda value: value if isinstance(value, Mapping) else None)
        texts: Dict[str, str] = {}
        for name, value in (found or {}).items():
            inside = (self._key(field), str(name))
            texts[str(name)] = text = self._scalar(field, inside, value)
            wrong = problem(str(name), text)
            if wrong:
                self.wrong(inside, wrong)
        return texts

    def auth(self, headers: Dict[str, str]) -> Optional[Dict[str, Any]]:
        """Options for signing in; a token that the entry has instead is put to the headers."""
        remarks = Remarks(
            self._scalar, self.wrong, lambda inside, text, near: self._remark("warning", inside, text, near)
        )
        options, token = read_auth(self._fields, headers, remarks)
        if token is not None:
            value = "Bearer " + token
            problem = _header_problem("Authorization", value)
            if problem:
                self.wrong((self._key("auth"),), problem)
            headers["Authorization"] = value
        return options

    def _scalar(self, field: str, inside: Where, value: Any) -> str:
        """A string, or what has exactly one way to be written as one."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, str):
            return self._expanded(field, inside, value)
        self.wrong(inside, "must be a string, and is %s: put it in quotes" % kind(value))
        return ""

    def _expanded(self, field: str, inside: Where, text: str) -> str:
        if not self.enabled:
            return text
        bare = field in self._dialect.bare_variables
        expanded = expand(text, self._environ, bare=bare)
        if expanded.missing:
            self.wrong(
                inside,
                "server %r needs a variable that is not set: %s; set it, or give a default as ${%s:-...}"
                % (self._name, ", ".join(expanded.missing), expanded.missing[0]),
            )
        if "\0" in expanded.text:
            self.wrong(inside, "contains a NUL character")
        for form in expanded.foreign:
            self.wrong(inside, "${%s} can only be filled by the program that the file was written for" % form)
        unexpanded = "" if bare else bare_variable(text, self._environ)
        if unexpanded:
            self._remark(
                "note", inside, "$%s is taken as it stands here: a variable is ${%s}" % (unexpanded, unexpanded)
            )
        return expanded.text

    # -- command, transport, url

    def command(self) -> List[str]:
        """The program, and the arguments that stand with it if it is a list."""
        if "command" not in self._fields:
            return []
        key, value = self._fields["command"]
        if not isinstance(value, (str, list, tuple)):
            self.wrong((key,), "must be the name of a program, or a list with its arguments, and is %s" % kind(value))
            return []
        if isinstance(value, str):
            found = [self.text("command")]
            if " " in value.strip() and not any(char in value.split()[0] for char in "/\\$"):
                self._remark("warning", (key,), 'is one program name: put arguments in "args" or write a list')
        else:
            found = self.texts("command")
            if not found or not found[0]:
                self.wrong((key,), 'must begin with the name of a program, as ["npx", "-y", "a-server"]')
        return found

    def transport(self, has_command: bool, has_url: bool) -> str:
        """The transport: ``transport`` wins over ``type``, and what the entry has decides if neither is given."""
        implied = "stdio" if has_command else "auto" if has_url else ""
        field = "transport" if "transport" in self._fields else "type"
        if field not in self._fields:
            return implied
        key, value = self._fields[field]
        if not isinstance(value, str) or value not in TRANSPORTS:
            self.wrong((key,), "must be one of stdio, http, sse")
            return implied
        stated = TRANSPORTS[value]
        if (stated == "stdio" and has_url) or (stated != "stdio" and has_command):
            self.wrong((key,), "is %s, which goes with %r" % (stated, "command" if stated == "stdio" else "url"))
        return stated

    def checked_url(self, url: Optional[str]) -> Optional[str]:
        if url is None or not self.enabled:
            return url
        inside = (self._key("url"),)
        problem = _url_problem(url)
        if problem:
            self.wrong(inside, problem)
        elif not self._fields.keys() & {"transport", "type"}:
            self._remark("note", inside, "no type is given: tried as Streamable HTTP, then as the older HTTP+SSE")
        return url


def _url_problem(url: str) -> str:
    try:
        parts = urlsplit(url)
        scheme, host, has_secret = parts.scheme.lower(), parts.hostname, "@" in parts.netloc
    except ValueError:
        scheme, host, has_secret = "", None, False
    if scheme in _SOCKET_SCHEMES and (parts.path or host):
        return ""
    if scheme not in ("http", "https") or not host:
        return "must be an http or https URL with a host, or that of a Unix socket: unix:///path/to.sock#/mcp"
    return "credentials do not belong into a URL: put them into headers" if has_secret else ""
