"""One server of a host: connected, its tools fetched, and both again when they may have changed.

An *attempt* connects if need be, lists the tools, and hands them over whole. It runs on a thread of the host, one
at a time per server. It is wanted when the host opens, when the connection has a new session, when the server
says that its tools changed, and some time after an attempt that failed.

Two things connect again, and never both: an open :class:`~mcpsync.Client` that lost its server does so itself; the
first connection, and a listing that failed, are tried again from here, after the same delays.
"""

from __future__ import annotations

import logging
import time
import weakref
from threading import RLock
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from mcpsync.client import Client
from mcpsync.connection.backoff import Backoff
from mcpsync.connection.watchdog import Timer
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import (
    AuthError,
    ClientClosed,
    ConfigError,
    ConnectFailed,
    ConnectTimeout,
    McpError,
    PageLimit,
    VersionMismatch,
)
from mcpsync.host.catalog import Catalog
from mcpsync.host.crew import Crew
from mcpsync.host.filters import ToolFilter
from mcpsync.host.preflight import preflight
from mcpsync.host.queueing import Turnstile
from mcpsync.host.reach import load_before_threads, reach
from mcpsync.host.roster import Entry
from mcpsync.host.safety import Safety, Vetted
from mcpsync.host.schema_cache import SchemaCache, fingerprint
from mcpsync.host.sharing import share_texts
from mcpsync.host.status import ServerStatus
from mcpsync.types import Tool

__all__ = ["Member"]

logger = logging.getLogger("mcpsync")

_USABLE = ("ready", "dormant")
_CLIENT_CONNECTS = ("connecting", "waiting")
_LEAST_LISTING = 1.0
"""Seconds for the listing where connecting took all the time there was."""


class _Observer:
    """Holds the member weakly: the connection must not keep alive the client that owns it."""

    def __init__(self) -> None:
        self.member: Callable[[], Optional[Member]] = lambda: None

    def state_changed(self) -> None:
        member = self.member()
        if member is not None:
            member.state_changed()

    def tools_changed(self) -> None:
        member = self.member()
        if member is not None:
            member.tools_changed()

    def retry(self) -> None:
        """The time for another attempt has come."""
        member = self.member()
        if member is not None:
            member.want()


class Member:
    """One server that is started.

    :param entry: what the host was given of it
    :param options: for its client
    :param allows: whether the host uses a tool, by its name on the server
    :param catalog: gets its tools
    :param crew: lends threads
    :param schemas: remembers its tools for the next time
    :param safety: looks at its tools, and holds its requests back
    :ivar client: its client
    :ivar turnstile: where its calls queue; None if they may run at the same time
    :ivar calls_elsewhere: its calls may be made on another thread than the one that wants them, since its callbacks
        need neither that one nor a UI's, which may be that one
    :ivar timeouts: how long its calls may take, and the rest
    :ivar connect_seconds: how long connecting may take
    :ivar pending: nothing is known yet of the attempt that the host's ``open`` waits for
    """

    def __init__(
        self,
        entry: Entry,
        options: Mapping[str, Any],
        allows: Callable[[str], bool],
        catalog: Catalog,
        crew: Crew,
        schemas: SchemaCache,
        safety: Safety,
    ) -> None:
        self.entry = entry
        self.config = config = entry.config
        self.name = config.name
        self._allows = allows
        self._filter = ToolFilter(config.tools_include, config.tools_exclude)
        self._catalog = catalog
        self._crew = crew
        self.timeouts: Timeouts = options["timeouts"]
        self.calls_elsewhere = options.get("callbacks", "pool") == "pool"
        self._backoff: Backoff = options.get("backoff", Backoff())
        self._observer = _Observer()
        self.connect_seconds = self.timeouts.connect
        self._schemas = schemas
        self._safety = safety
        self._fingerprint = None if entry.factory is not None else fingerprint(config)
        self._options = options
        self._retired = False
        load_before_threads(entry)
        target, merged = reach(config, options, entry.factory)
        self.client = Client(target, **{**safety.gated(config, merged), "observer": self._observer})
        self._observer.member = weakref.ref(self)
        # sessions of the client: written by attempts alone
        self._tried: Optional[int] = None
        self._listed: Optional[int] = None
        self._unwritten: Optional[List[Tool]] = None
        self._error: Optional[McpError] = None
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first: no attempt runs or is planned."""
        # guards the fields below and _error; reentrant, as a finalizer may call a tool at any moment
        self._lock = RLock()
        self._busy = False
        self._stale = False
        self._failures = 0
        self._retry: Optional[Timer] = None
        self.pending = False
        self.turnstile = None if self.config.supports_parallel else Turnstile(self.name)

    # -- what is told to it, on any thread, quick --------------------------------------------------------------

    def want(self, fresh: bool = False) -> None:
        """Have an attempt made soon, unless one is being made.

        :param fresh: the user asks for it: the series of delays begins anew, and :attr:`pending` is set
        """
        with self._lock:
            if self._retired:
                return
            if fresh:
                self._failures = 0
                self.pending = True
            if self._retry is not None:
                self._retry.cancel()
                self._retry = None
            if self._busy:
                return
            self._busy = True
        if not self._crew.workers.submit(self._run):
            with self._lock:
                self._busy = self.pending = False

    def state_changed(self) -> None:
        """The client has another state: withdraw the tools, or fetch them in the new session."""
        if self._in_new_session():
            self.want()
        self._catalog.update(self.name, self._is_ready_still)

    def tools_changed(self) -> None:
        """The server may list other tools now."""
        if self.client.state == "ready":
            with self._lock:
                self._stale = True
            self.want()

    def overdue(self, seconds: float) -> None:
        """The host waits no longer for the attempt that is pending."""
        with self._lock:
            if self.pending and self._error is None:
                self._error = ConnectTimeout(
                    "not connected within %g s; the attempt goes on in the background" % seconds, server=self.name
                )

    def retire(self) -> None:
        """The host has it no longer: nothing is tried again, and what it would still tell is not heard."""
        with self._lock:
            self._retired = True
            self.pending = False
            if self._retry is not None:
                self._retry.cancel()
                self._retry = None

    def forget_tools(self) -> None:
        """Have its tools remembered no longer."""
        if self._fingerprint is not None:
            self._schemas.forget(self._fingerprint)

    def show_remembered(self) -> None:
        """Until it is connected, show the tools that it had the last time; they are not ready."""
        remembered = None if self._fingerprint is None else self._schemas.recall(self._fingerprint)
        if remembered and self._listed is None:
            self._show(self._chosen(remembered))

    # -- what can be asked -------------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Whether its tools are those of the session that stands, or that the next call opens."""
        return self.client.sessions == self._listed and self.client.state in _USABLE

    def _is_ready_still(self) -> Optional[bool]:
        return None if self._retired else self.is_ready()

    def _in_new_session(self) -> bool:
        return self.client.state == "ready" and self.client.sessions != self._tried

    def status(self) -> ServerStatus:
        """Its row in the host's table."""
        table = self._catalog.table
        state, error, next_attempt = self._condition()
        return ServerStatus(
            name=self.name,
            state=state,
            ready=self.is_ready(),
            transport=self.config.transport,
            protocol_version=self.client.protocol_version,
            tools=table.count(self.name),
            error=None if error is None else str(error),
            next_attempt=next_attempt,
            refused=table.refused(self.name),
            config=self.config,
            source=self.entry.source,
            file=self.entry.file,
        )

    def _condition(self) -> Tuple[str, Optional[McpError], Optional[float]]:
        """State, error, and seconds to the next attempt."""
        state = self.client.state
        with self._lock:
            error, busy = self._error, self._busy
            next_attempt = None if self._retry is None else max(0.0, self._retry.at - time.monotonic())
        if state == "new" and busy:
            return "connecting", error, None
        if state == "new" and next_attempt is not None:
            return "waiting", error, next_attempt
        if state == "new" and error is not None:
            return "down", error, None
        if state in ("waiting", "down"):
            lost = self.client.last_error
            return state, lost or error, getattr(lost, "next_attempt", None)
        return state, error, next_attempt

    # -- attempts ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        again = True
        while again:
            error = self._attempt()
            if error is not None and not isinstance(error, ClientClosed):
                level = logging.INFO if self._failures else logging.WARNING
                logger.log(level, "mcpsync: host: %s", error)
            with self._lock:
                self._error = error
                self.pending = False
                again = not self._retired and (self._stale or self._in_new_session())
                if not again:
                    self._busy = False
                    self._plan(error)
            self._crew.announce()
            self._remember()

    def _remember(self) -> None:
        """Keep what was listed for the next time; after all who wait have been told, since it may write a file."""
        listed, self._unwritten = self._unwritten, None
        if listed is not None and self._fingerprint is not None and not self._retired:
            self._schemas.remember(self._fingerprint, listed)

    def _plan(self, error: Optional[McpError]) -> None:
        """Whether and when to try again; the lock is held."""
        if error is None or self._retired:
            self._failures = 0
            return
        if self.client.state in _CLIENT_CONNECTS or not _worth_retrying(error):
            return
        delay = self._backoff.delay(self._failures)
        if delay is not None:
            self._failures += 1
            self._retry = self._crew.later(delay, self._observer.retry)

    def _attempt(self) -> Optional[McpError]:
        """Connect if need be, list, hand over. Gives what went wrong."""
        deadline = Deadline(self.timeouts.connect)
        with self._lock:
            self._stale = False
        try:
            self._check_before_start()
            self.client.open()
            self._tried = session = self.client.sessions
            listed, incomplete = self._list(deadline)
            tools = self._chosen(listed)
        except McpError as error:
            return error
        except Exception as error:  # a rule of the user that raises, say: it costs this server and no other
            logger.exception("mcpsync: host: server %r could not be connected", self.name)
            return ConfigError("%s: %s" % (type(error).__name__, error), server=self.name)
        self._listed = session
        self._show(tools)
        self._unwritten = listed if incomplete is None else None
        return incomplete

    def _check_before_start(self) -> None:
        """
        :raises McpError: what is wrong with the entry can be known without starting anything
        """
        if self.client.state == "new" and not self.config.skip_preflight:
            problem = preflight(self.config, self._options)
            if problem is not None:
                raise problem

    def _list(self, deadline: Deadline) -> Tuple[List[Tool], Optional[PageLimit]]:
        seconds = max(_LEAST_LISTING, deadline.remaining() or 0.0)
        incomplete: Optional[PageLimit] = None
        try:
            tools = self.client.list_tools(
                timeout=self.timeouts.override(call=seconds, idle=None, total=seconds), cache="bypass"
            )
        except PageLimit as error:
            tools, incomplete = error.partial, error
        for tool in tools:
            share_texts(tool.input_schema)
        return tools, incomplete

    def _chosen(self, tools: Sequence[Tool]) -> Vetted:
        """Of the tools that it lists, those that the host uses."""
        wanted = [tool for tool in tools if self._filter.allows(tool.name) and self._allows(tool.name)]
        return self._safety.vet(self.config, wanted)

    def _show(self, vetted: Vetted) -> None:
        self._catalog.update(self.name, self._is_ready_still, vetted.tools, vetted.refused, vetted.risks)


def _worth_retrying(error: McpError) -> bool:
    if isinstance(error, ConnectFailed) and error.permanent:
        return False
    if isinstance(error, AuthError):
        return error.passing
    return not isinstance(error, (ClientClosed, ConfigError, PageLimit, VersionMismatch))
