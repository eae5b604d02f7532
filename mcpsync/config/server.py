"""One server's entry to a :class:`~mcpsync.config.model.ServerConfig`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import quote, urlsplit

from mcpsync.config.diagnose import Report, Where, kind
from mcpsync.config.dialects import TRANSPORTS, Dialect
from mcpsync.config.entry import Entry
from mcpsync.config.env_file import read_env_file
from mcpsync.config.expand import Values
from mcpsync.config.model import ServerConfig
from mcpsync.config.signing import Remarks, read_auth

__all__ = ["read_server"]

_SOCKET_SCHEMES = ("unix", "http+unix")
_STREAM = "stream"
_STDIO_ONLY = ("args", "env", "cwd", "env_file", "env_names", "env_mode")
_SENT = "headers are sent to a url only"
_SIGNING = "signing in is for a url only"
_HTTP_ONLY = {
    "headers": _SENT,
    "headers_from_env": _SENT,
    "headers_command": _SENT,
    "token": _SIGNING,
    "token_from_env": _SIGNING,
    "auth": _SIGNING,
    "oauth": _SIGNING,
    "scopes": _SIGNING,
}
_PROTOCOLS = ("auto", "legacy", "modern", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def read_server(
    name: str,
    body: Any,
    where: Where,
    dialect: Dialect,
    switched_on: bool,
    values: Values,
    report: Report,
) -> ServerConfig:
    """Read one server; whatever is wrong with it is reported, and kept as its ``error`` unless it is disabled."""
    entry = Entry(name, where, dialect, values, report)
    if not isinstance(body, Mapping):
        entry.wrong((), 'must be a map, as {"command": "npx", "args": ["-y", "a-server"]}, and is %s' % kind(body))
        return ServerConfig(name, enabled=False, error=entry.error)
    if isinstance(body.get("type"), str) and body["type"] in dialect.own_kinds:
        entry.remark("note", ("type",), "is %s: a part of the program that the file was written for" % body["type"])
        return ServerConfig(name, enabled=False)
    enabled = switched_on and _is_enabled(body, dialect)
    entry.enabled = enabled
    entry.take(body)
    entry.flag("enabled", True)
    entry.flag("disabled", False)

    program = _command(entry)
    url = _url(entry)
    _check_completeness(entry, bool(program), url is not None)
    headers = _headers(entry)
    auth = None if url is None else _auth(entry, headers)
    config = ServerConfig(
        name=name,
        transport=_transport(entry, bool(program), url),
        command=(*program, *entry.texts("args")) if program else (),
        env=_env(entry),
        cwd=entry.text("cwd") or None,
        url=_checked_url(entry, url),
        headers=headers,
        auth=auth,
        enabled=enabled,
        timeout=entry.seconds("timeout", dialect.timeout, dialect.max_timeout),
        connect_timeout=entry.seconds("connect_timeout", dialect.connect_timeout, dialect.max_connect_timeout),
        tools_include=_included(entry),
        tools_exclude=tuple(entry.texts("tools_exclude")),
        trust_level=entry.choice("trust_level", ("untrusted", "trusted"), None) or "untrusted",
        env_mode=entry.choice("env_mode", ("safe", "inherit", "none"), dialect.env_mode),
        headers_command=_headers_command(entry),
        protocol=entry.choice("protocol", _PROTOCOLS, None),
        keepalive=entry.seconds("keepalive", dialect.keepalive, zero=True),
        idle_disconnect=entry.seconds("idle_disconnect", None, zero=True) or None,
        max_lifetime=entry.seconds("max_lifetime", None, zero=True) or None,
        supports_parallel=entry.flag("supports_parallel", dialect.parallel),
        skip_preflight=entry.flag("skip_preflight", False),
    )
    if "refused" in entry:
        entry.wrong(entry.where("refused"), "is refused, as a secret does not belong here: use bearer_token_env_var")
    if not enabled or entry.error is None:
        return config
    return replace(config, enabled=False, error=entry.error)


def _is_enabled(body: Mapping[Any, Any], dialect: Dialect) -> bool:
    """Looked at first, since what is wrong with an entry that is off is no error. Its own errors come later."""
    probe = Entry("", (), dialect, Values({}), Report(None))
    switches = {
        key: value
        for key, value in body.items()
        if isinstance(key, str) and dialect.keys.get(key) in ("enabled", "disabled")
    }
    probe.take(switches)
    return probe.flag("enabled", True) and not probe.flag("disabled", False)


def _variable_problem(name: str, _: str) -> str:
    if not name or "=" in name or "\0" in name:
        return "is no name for an environment variable"
    return ""


def _header_problem(name: str, value: str) -> str:
    if not name or not name.isascii() or any(char in name for char in " \t\r\n\0:"):
        return "is no name for a header"
    return "contains a line break" if "\r" in value or "\n" in value else ""


def _check_completeness(entry: Entry, has_command: bool, has_url: bool) -> None:
    """Exactly one of command and url; a disabled entry may have neither yet."""
    if has_command and has_url:
        entry.wrong((), "has both 'command' and 'url': a server has exactly one of the two")
    elif not (has_command or has_url) and entry.enabled and not entry.given("command", "url", "http_url", "socket"):
        meant = next(((key, near) for key, near in entry.unknown.items() if near in ("command", "url")), None)
        hint = ": is %r meant to be %r?" % meant if meant else ""
        entry.wrong((), "needs 'command' (a program to start) or 'url'" + hint)
    if has_command:
        for field, why in _HTTP_ONLY.items():
            if field in entry:
                entry.remark("warning", entry.where(field), "is not used: %s" % why)
    elif has_url:
        if "url" in entry and isinstance(entry.raw("url"), str) and _is_stream(entry.raw("url")):
            for field in (field for field in _HTTP_ONLY if field in entry and not entry.given("type", "transport")):
                entry.remark("warning", entry.where(field), "is not used: a stream has none; HTTP has unix:///…#/path")
        for field in _STDIO_ONLY:
            if field in entry:
                entry.remark("warning", entry.where(field), "is not used: it belongs to a 'command'")


def _command(entry: Entry) -> List[str]:
    """The program, and the arguments that stand with it if it is a list."""
    if "command" not in entry:
        return []
    inside, value = entry.where("command"), entry.raw("command")
    if not isinstance(value, (str, list, tuple)):
        entry.wrong(inside, "must be the name of a program, or a list with its arguments, and is %s" % kind(value))
        return []
    if isinstance(value, str):
        found = [entry.text("command")]
        if " " in value.strip() and not any(char in value.split()[0] for char in "/\\$"):
            entry.remark("warning", inside, 'is one program name: put arguments in "args" or write a list')
    else:
        found = entry.texts("command")
        if not found or not found[0]:
            entry.wrong(inside, 'must begin with the name of a program, as ["npx", "-y", "a-server"]')
    return found


def _env(entry: Entry) -> Dict[str, str]:
    """The variables of a file, under those that are named, under those that are given."""
    found: Dict[str, str] = {}
    if "env_file" in entry:
        path = entry.text("env_file")
        if entry.values.symbolic:
            entry.remark("warning", entry.where("env_file"), "is not copied: name its variables in env")
        elif path and entry.enabled:
            try:
                found.update(read_env_file(os.path.join(entry.values.folder, os.path.expanduser(path))))
            except ValueError as error:
                entry.wrong(entry.where("env_file"), str(error))
    if "env_names" in entry:
        found.update(_named_variables(entry))
    found.update(entry.text_map("env", _variable_problem, nulls=True))
    return found


def _named_variables(entry: Entry) -> Dict[str, str]:
    """Names of variables that are passed on, or maps with a ``name``. One that is not set is not passed on, with a
    remark: these programs do not ask for it either."""
    inside, value = entry.where("env_names"), entry.raw("env_names")
    if not isinstance(value, (list, tuple)):
        entry.wrong(inside, 'must be a list of names, as ["API_KEY"], and is %s' % kind(value))
        return {}
    found: Dict[str, str] = {}
    for index, item in enumerate(value):
        name = item.get("name") if isinstance(item, Mapping) else item
        if not isinstance(name, str) or _variable_problem(name, ""):
            entry.wrong((*inside, index), "is no name for an environment variable")
        elif entry.values.variable(name) is not None:
            found[name] = entry.values.variable(name) or ""
        elif entry.enabled:
            entry.remark("warning", (*inside, index), "the variable %s is not set, and so not passed on" % name)
    return found


def _headers(entry: Entry) -> Dict[str, str]:
    headers = entry.text_map("headers", _header_problem)
    if "headers_from_env" in entry:
        inside, value = entry.where("headers_from_env"), entry.raw("headers_from_env")
        if not isinstance(value, Mapping):
            entry.wrong(inside, 'must be a map, as {"X-Key": "VARIABLE"}, and is %s' % kind(value))
            value = {}
        for name, variable in value.items():
            if isinstance(variable, str):
                headers[str(name)] = text = entry.variable((*inside, str(name)), variable)
                problem = _header_problem(str(name), text)
            else:
                problem = "must be the name of a variable, and is %s" % kind(variable)
            if problem:
                entry.wrong((*inside, str(name)), problem)
    return headers


def _headers_command(entry: Entry) -> Optional[str]:
    found = entry.text("headers_command") or None
    if found is not None and entry.enabled:
        entry.remark("note", entry.where("headers_command"), "is a command line that is run for the headers")
    return found


def _auth(entry: Entry, headers: Dict[str, str]) -> Optional[Dict[str, Any]]:
    """Options for signing in; a token that the entry has instead is put to the headers."""
    token = field = None
    if "token_from_env" in entry:
        field = "token_from_env"
        variable = entry.raw(field)
        if isinstance(variable, str):
            token = entry.variable(entry.where(field), variable)
        else:
            entry.wrong(entry.where(field), "must be the name of a variable, and is %s" % kind(variable))
    elif "token" in entry:
        field, token = "token", entry.text("token")
    if token and field:
        _bearer(entry, headers, token, entry.where(field))
    remarks = Remarks(entry.scalar, entry.wrong, lambda inside, text, near: entry.remark("warning", inside, text, near))
    options, given = read_auth(entry.signing(), headers, remarks)
    if given is not None:
        _bearer(entry, headers, given, entry.where("auth"))
    scopes = entry.texts("scopes") if "scopes" in entry else []
    return {**options, "scopes": scopes} if scopes and options is not None else options


def _bearer(entry: Entry, headers: Dict[str, str], token: str, inside: Where) -> None:
    value = "Bearer " + token
    problem = _header_problem("Authorization", value)
    if problem:
        entry.wrong(inside, problem)
    headers["Authorization"] = value


def _included(entry: Entry) -> Tuple[str, ...]:
    found = tuple(entry.texts("tools_include"))
    return () if found == ("*",) else found


def _transport(entry: Entry, has_command: bool, url: Optional[str]) -> str:
    """The transport: ``transport`` wins over ``type``, and what the entry has decides if neither is given."""
    has_url = url is not None
    implied = "stdio" if has_command else "" if url is None else _STREAM if _is_stream(url) else "auto"
    field = "transport" if "transport" in entry else "type"
    if field not in entry:
        if has_url and (entry.flag("streamable", False) or "http_url" in entry or "socket" in entry):
            return "http"
        return implied
    inside, value = entry.where(field), entry.raw(field)
    known = {**TRANSPORTS, **entry.dialect.transports}
    if not isinstance(value, str) or value not in known:
        entry.wrong(inside, "must be one of stdio, http, sse")
        return implied
    stated = known[value]
    if not stated:
        entry.wrong(inside, "is %s, which only the program that the file was written for can reach" % value)
        return implied
    if (stated == "stdio" and has_url) or (stated != "stdio" and has_command):
        entry.wrong(inside, "is %s, which goes with %r" % (stated, "command" if stated == "stdio" else "url"))
    return stated


def _is_stream(url: str) -> bool:
    """Whether it is the URL of a Unix socket that names no path for HTTP: messages travel there as on stdio."""
    return url.lower().startswith("unix:") and "#" not in url


def _url(entry: Entry) -> Optional[str]:
    if "http_url" in entry:
        if "url" in entry:
            entry.remark("warning", entry.where("url"), "is not used: httpUrl goes before it")
        return entry.text("http_url") or None
    url = entry.text("url") or None
    if "socket" in entry:
        path = entry.text("socket")
        if not path.startswith("/"):
            entry.wrong(entry.where("socket"), "must be the absolute path of a Unix socket; abstract ones are not used")
        elif url is not None and entry.enabled:
            try:
                parts = urlsplit(url)
            except ValueError:
                return url  # which is reported where it is checked
            target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
            return "http+unix://%s%s" % (quote(path, safe=""), target)
    return url


def _checked_url(entry: Entry, url: Optional[str]) -> Optional[str]:
    if url is None or not entry.enabled or entry.dialect.transports.get(str(entry.raw("type"))) == "":
        return url
    inside = entry.where("http_url" if "http_url" in entry else "url")
    problem = "" if entry.values.symbolic and "${" in url else _url_problem(url)
    if problem:
        entry.wrong(inside, problem)
    elif (
        not _is_stream(url)
        and not entry.given("transport", "type", "http_url", "socket")
        and not entry.flag("streamable", False)
    ):
        entry.remark("note", inside, "no type is given: tried as Streamable HTTP, then as the older HTTP+SSE")
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
