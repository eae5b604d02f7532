"""Commands that look at all servers of a config file: status, and doctor, which says what to do about each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Tuple

from mcpsync.cli.arguments import Invocation, closest
from mcpsync.cli.exits import NO_CONNECTION, OK, USAGE
from mcpsync.cli.output import Output
from mcpsync.cli.servers import CLOSE_SECONDS, uninterrupted
from mcpsync.config import Config, load
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConfigError
from mcpsync.host import Host, ServerStatus
from mcpsync.host.preflight import preflight

__all__ = ["OVERVIEWS", "run_overview"]

Check = Tuple[str, str]
"""What was looked at, and how it is: ``ok``, or what is wrong."""


def run_overview(invocation: Invocation, output: Output) -> int:
    """Connect all servers, show how each is, and give the exit code.

    :raises ConfigError: the file is wrong, or has no such server
    """
    config = _chosen(load(invocation.config or ""), invocation)
    timeouts = Timeouts(close=CLOSE_SECONDS)
    if invocation.timeout is not None:
        timeouts = timeouts.override(connect=invocation.timeout, call=invocation.timeout)
    host = Host(
        config, protocol=invocation.protocol, timeouts=timeouts, connect_timeout=invocation.timeout, schema_cache=False
    )
    try:
        host.open()
        rows = host.status()
    finally:
        with uninterrupted():
            host.close()
    code = OVERVIEWS[invocation.command](config, rows, output)
    output.document({"file": config.source, "servers": [_document(config, row) for row in rows]})
    return code


def _chosen(config: Config, invocation: Invocation) -> Config:
    if invocation.server is None:
        return config
    if invocation.server not in config.servers:
        raise ConfigError(
            "has no server %r" % invocation.server,
            file=config.source,
            nearest=closest(invocation.server, config.servers),
        )
    return replace(config, servers={invocation.server: config.servers[invocation.server]})


def _worst(rows: List[ServerStatus]) -> int:
    if any(row.state == "invalid" for row in rows):
        return USAGE
    return OK if all(row.ready or row.state == "disabled" for row in rows) else NO_CONNECTION


def _status(config: Config, rows: List[ServerStatus], output: Output) -> int:
    output.table(
        [
            (
                row.name,
                row.state,
                row.transport or "-",
                row.protocol_version or "-",
                "%d tools" % row.tools if row.ready else "-",
                row.target or "-",
                row.error or "",
            )
            for row in rows
        ]
    )
    return _worst(rows)


def _doctor(config: Config, rows: List[ServerStatus], output: Output) -> int:
    for diagnostic in config.diagnostics:
        if diagnostic.server is None:
            output.lines(str(diagnostic))
    for row in rows:
        output.lines("%s: %s" % (row.name, row.state))
        output.table(_checks(config, row))
    return _worst(rows)


def _checks(config: Config, row: ServerStatus) -> List[Check]:
    """What there is to say of one server, in the order in which things happen."""
    if row.state == "disabled":
        return [("config", "switched off")]
    remarks = [str(each) for each in config.diagnostics if each.server == row.name]
    checks: List[Check] = [("config", remark) for remark in remarks] or [("config", "ok")]
    if row.state == "invalid":
        return checks if remarks else [("config", row.error or "wrong")]
    problem = preflight(row.config, {"env_mode": row.config.env_mode or "safe"})
    what = "url" if row.config.url is not None else "command"
    checks.append((what, str(problem) if problem is not None else "ok: %s" % row.target))
    if problem is not None:
        return checks
    if row.state == "needs_login":
        return [*checks, ("login", "needed: mcpsync login %s --config %s" % (row.name, config.source))]
    if not row.ready:
        return [*checks, ("handshake", row.error or row.state)]
    checks.append(("handshake", "ok: revision %s" % row.protocol_version))
    checks.append(("tools", "ok: %d" % row.tools))
    return [*checks, *(("refused", reason) for reason in row.refused)]


def _document(config: Config, row: ServerStatus) -> Dict[str, Any]:
    return {
        "server": row.name,
        "state": row.state,
        "ready": row.ready,
        "transport": row.transport,
        "target": row.target,
        "protocol": row.protocol_version,
        "tools": row.tools,
        "error": row.error,
        "refused": list(row.refused),
        "checks": [{"check": check, "result": result} for check, result in _checks(config, row)],
    }


OVERVIEWS = {"status": _status, "doctor": _doctor}
