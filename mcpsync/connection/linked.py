"""What of a connection stays while links come and go: its states, and the threads that see to them.

States::

    new ──open──▶ connecting ──▶ ready ──lost──▶ waiting ──▶ connecting ...
                      │             │               │ five failures
                      ▼             ▼ idle, old     ▼
                     new          dormant          down          closed, from anywhere

``waiting`` means that the next attempt is scheduled; calls fail at once and name it. From ``new``, ``dormant`` and
``down`` the next call opens a link itself. So it does from ``needs_login``, where an attempt leads that failed because
nobody is signed in: only that helps then, and it is looked for.
"""

from __future__ import annotations

import copy
import itertools
import logging
import time
from _thread import get_ident
from typing import Any, Callable, Dict, List, Optional

from mcpsync.connection import lifetime
from mcpsync.connection.awaiting_login import AwaitingLogin
from mcpsync.connection.call import Call, Wanted
from mcpsync.connection.calls import Calls
from mcpsync.connection.dispatch import Dispatch
from mcpsync.connection.endings import Endings
from mcpsync.connection.hooks import Hooks
from mcpsync.connection.inbound import Inbound
from mcpsync.connection.leaving import Leaving
from mcpsync.connection.link import Link, Owner
from mcpsync.connection.opening import (
    Opened,
    connect_error,
    forget_verdict,
    listen_again,
    open_link,
    recall_verdict,
    remember_verdict,
)
from mcpsync.connection.questions import Questions
from mcpsync.connection.restoring import Restoring
from mcpsync.connection.settings import Settings
from mcpsync.connection.states import States
from mcpsync.connection.subscriptions import Subscriptions
from mcpsync.connection.threads import Condition, Workers, forbid_blocking
from mcpsync.connection.upkeep import Upkeep
from mcpsync.connection.watchdog import Timer, Watchdog
from mcpsync.core.era import Revision
from mcpsync.core.headers import Mirror
from mcpsync.core.negotiation import Negotiation
from mcpsync.core.session import Event, Session
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import (
    AuthError,
    ClientClosed,
    ConnectFailed,
    ConnectionLost,
    ConnectTimeout,
    McpError,
    NeedsLogin,
    VersionMismatch,
    described,
)

__all__ = ["LinkedConnection"]

logger = logging.getLogger("mcpsync")


class LinkedConnection(Owner):
    """The part of a connection that has a link: opens it, notices its loss, opens another, closes.

    :ivar state: as in the module's picture
    :ivar server: what the server said of itself; empty before the first link
    :ivar log_level: the level asked for
    :ivar sessions: how many links there have been
    :ivar mirrors: by tool, the parameters that travel in headers too
    :ivar list_tools: lists the tools anew, which renews the mirrors
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.name = settings.name
        self.timeouts = settings.timeouts
        self._keeper = settings.keeper
        self.server: Dict[str, Any] = {}
        self.log_level = settings.log_level
        self.listeners: Any = None
        self.list_tools: Callable[[Timeouts], None] = _list_nothing
        self.mirrors: Dict[Any, Mirror] = {}
        self._ids = itertools.count(1)
        self._link: Optional[Link] = None
        self.state = "new"
        self.sessions = 0
        self._closed = False
        self._unseen_forks = lifetime.forks_unseen()
        self._build()

    def _build(self) -> None:
        """Everything that has a lock or a thread in it: made at first, and made anew in a forked child."""
        settings, limits = self._settings, self._settings.limits
        prefix = "mcpsync-%s" % self.name
        # guards the fields below and state, _link, _closed; waited on by those who need the outcome of an attempt
        self._changed = Condition()
        self._opening_link: Optional[Link] = None
        self._connects_on: Optional[int] = None  # the thread whose attempt is, or was, the last
        self._previous_link: Optional[Link] = None
        self._attempt_error: Optional[McpError] = None
        self._states = States(self._tell_state)
        self._failures = 0
        self._stands_since = 0.0
        self._unused_id: Optional[int] = None
        self._retry: Optional[Timer] = None
        self._upkeep: Optional[Upkeep] = None
        self._closing = False
        self._ending: List[Link] = []
        self._end_of_all = "the client is closed"
        self._last_error: Optional[McpError] = None
        self.dispatch = Dispatch(settings.callbacks, prefix, limits.handlers, limits.callbacks, limits.waiting)
        self.watchdog = Watchdog(prefix + "-watchdog", self._expired, self._slept)
        self._control = Workers(prefix + "-control", settings.senders, inner=True)  # sends what must not wait
        self._links = Workers(prefix + "-link", 1, inner=True)  # opens and closes links, which takes its time
        self._steps = Workers(prefix + "-call", limits.submitted, calling=True)
        questions = Questions(settings.handlers, self.dispatch, self.watchdog)
        self._endings = Endings(self.name, self.watchdog, self._control)
        self._calls = Calls(
            self.name,
            self.watchdog,
            self.dispatch,
            self._endings,
            self._steps,
            questions,
            limits.rounds,
            settings.result_types,
            self._renewed,
            self._list_tools_anew,
            Hooks(settings.hooks) if settings.hooks else None,
        )
        self.subscriptions = Subscriptions(
            *(self.name, self._calls, self._endings, self.watchdog, self._links),
            *(settings.gap, self._keeper.missed, settings.backoff),
        )
        self._restoring = Restoring(
            self.name, self._calls, self.subscriptions, self._links, settings.lists, settings.timeouts.connect
        )
        self._leaving = Leaving(self._links, self.watchdog, settings.timeouts.close)
        self.login = AwaitingLogin(self.watchdog, self._links, settings.signed_in, self._reconnect_signed_in)
        self._inbound = Inbound(
            self._calls,
            questions,
            self.dispatch,
            self._control,
            self._notified,
            settings.timeouts.ask,
        )

    def _expired(self, call: Call) -> None:
        self._endings.expired(call)

    def _slept(self, seconds: float) -> None:
        if self._upkeep is not None:
            self._upkeep.woke(seconds)

    @property
    def link(self) -> Optional[Link]:
        """The link that stands, if one does."""
        return self._link

    @property
    def revision(self) -> Optional[Revision]:
        """What is spoken, once that is known."""
        link = self._link
        return None if link is None else link.session.revision

    @property
    def last_error(self) -> Optional[McpError]:
        """Why there is no link, as far as that is known."""
        with self._changed:
            return self._unavailable(None) if self.state == "waiting" else self._last_error

    # -- opening -----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, once, unless connected.

        :raises ConnectFailed, ProcessExited, VersionMismatch, RpcError: why it failed
        """
        forbid_blocking()
        if self._unseen_forks:
            lifetime.after_unseen_fork()
        if self._link is None:
            self._ready(None, Deadline(self.timeouts.connect))

    def _ready(self, method: Optional[str], deadline: Deadline) -> Link:
        """The link: open one, or wait for whoever does, or say why there is none."""
        previous = None
        waited = False
        try:
            with self._changed:
                while True:
                    if self._closed:
                        raise ClientClosed(self._end_of_all, server=self.name, method=method)
                    if self._link is not None:
                        return self._link
                    if self.state == "waiting":
                        raise self._unavailable(method)
                    if self.state != "connecting":
                        if waited and self._attempt_error is not None:
                            # the attempt that this thread waited for is its attempt too
                            raise copy.copy(self._attempt_error).located(self.name, method)
                        break
                    if self._connects_on == get_ident():
                        raise ConnectFailed(
                            "this thread is in the middle of connecting, and a call that it makes there would wait for "
                            "itself (in a signal handler, a __del__, a function that gives headers?)",
                            server=self.name,
                            method=method,
                        )
                    waited = True
                    if not self._changed.wait(deadline.remaining()):
                        raise ConnectTimeout("the connection was not made in time", server=self.name, method=method)
                previous = self.state
                self._connects_on = get_ident()
                self._set_state("connecting")
            return self._open_here(deadline)
        except BaseException as error:  # Ctrl-C among them: nobody must wait for an attempt that is no more
            if previous is not None:
                self._attempt_failed(previous, error)
            raise

    def _unavailable(self, method: Optional[str]) -> ConnectionLost:
        # the condition is held
        cause = self._last_error.message if self._last_error is not None else "the connection was lost"
        return ConnectionLost(
            "not connected: %s" % cause, server=self.name, method=method, next_attempt=self._next_attempt()
        )

    def _next_attempt(self) -> Optional[float]:
        return None if self._retry is None else max(0.0, self._retry.at - time.monotonic())

    def _open_here(self, deadline: Deadline) -> Link:
        """Make one attempt on this thread; ``connecting`` is this thread's by now, and the failure is the caller's."""
        self._states.tell_all()
        try:
            return self._adopt(self._attempt(deadline), deadline)
        except McpError as error:
            if self._closed:  # whatever it is, that is why
                raise ClientClosed("the client was closed while it connected", server=self.name) from None
            raise connect_error(error, self.name) from None
        except Exception as error:
            # a transport or factory of the user's may raise anything, and an attempt has to end as one
            raise ConnectFailed("the transport failed: %s" % described(error), server=self.name) from error

    def _attempt(self, deadline: Deadline) -> Opened:
        settings = self._settings
        lifetime.require_threads()
        self.watchdog.start()
        negotiation = Negotiation(
            settings.protocol,
            settings.client_info,
            settings.capabilities,
            None if settings.verdict_key is None else recall_verdict(settings.verdict_key),
        )
        try:
            opened = open_link(self._start_link, negotiation, deadline)
        except McpError:
            forget_verdict(settings.verdict_key)
            raise
        if settings.verdict_key is not None and opened.agreed.certain:
            remember_verdict(settings.verdict_key, "legacy" if opened.agreed.handshake else "modern")
        return opened

    def _start_link(self, deadline: Deadline) -> Link:
        session: Session[Call] = Session(self._ids, self._settings.client_info, self._settings.capabilities)
        session.log_level = self.log_level
        link = Link(self, self.name, self._settings.factory(), session, self.mirrors)
        with self._changed:
            if self._closed:
                raise ClientClosed("the client was closed while it connected", server=self.name)
            self._opening_link = link
            previous = self._previous_link
        if previous is not None and not previous.transport.exchange_like:
            previous.close(deadline)  # there is never a second process beside the first
        link.open(deadline)
        return link

    def _adopt(self, opened: Opened, deadline: Deadline) -> Link:
        """An attempt succeeded: the link is there for everyone."""
        link, agreed = opened
        with self._changed:
            lost = link.cause
            if not self._closed and lost is None:
                self.server = agreed.server
                self._last_error = None
                self._keeper.missed()  # before anybody can ask over it
                self._link = link
                self._stands_since = time.monotonic()
                self._unused_id = None
                self.sessions += 1
                self._set_state("ready")  # from here on it stands, even if Ctrl-C strikes
            self._opening_link = None
            if self._link is link:
                self._upkeep = Upkeep(
                    link,
                    self.timeouts,
                    self.watchdog,
                    self._control,
                    self._ping(link),
                    lambda why: self._release(link, why),
                )
            closed = self._closed
            self._changed.notify_all()
        if closed or lost is not None:
            link.close(Deadline(self.timeouts.close))
            raise lost or ClientClosed("the client was closed while it connected", server=self.name)
        self._states.tell_all()
        self._restoring.restore(link, self.server, self.log_level, deadline)
        with self._changed:
            stands = self._link is link
            if stands:
                self._unused_id = link.session.last_id
                if self._upkeep is not None:
                    self._upkeep.start()
        if stands and self.sessions > 1:
            self._settings.gap(self._settings.lists)
        return link

    def _attempt_failed(self, previous: str, error: BaseException) -> None:
        with self._changed:
            unfinished, self._opening_link = self._opening_link, None
            if unfinished is not None and unfinished is self._link:
                # interrupted in the very moment in which it was adopted
                if self.state == "connecting":
                    self._link = None
                else:
                    unfinished = None
            if isinstance(error, McpError):
                # a copy has no traceback: one would lead to the client, by way of the frames
                self._last_error = copy.copy(error)
            self._attempt_error = self._last_error if isinstance(error, McpError) else None
            if self._closed or self.state != "connecting":
                pass  # closed meanwhile, or interrupted when the link stood already
            elif isinstance(error, NeedsLogin):
                self._set_state("needs_login")
                self.login.begin()
            elif previous == "new" or not _worth_retrying(error):
                self._set_state("new" if previous == "new" else "down")
            else:
                self._schedule()
            self._changed.notify_all()
        if unfinished is not None:
            unfinished.close(Deadline(self.timeouts.close if isinstance(error, Exception) else 0))
        self._states.tell_all()

    def _schedule(self) -> None:
        # the condition is held
        delay = self._settings.backoff.delay(self._failures)
        self._failures += 1
        if delay is None:
            self._set_state("down")
            self._failures = 0
            self._retry = None
            return
        self._set_state("waiting")
        self._retry = self.watchdog.later(delay, self._retry_soon)

    def _retry_soon(self) -> None:
        if self._links.submit(self._reconnect_in_background):
            return
        with self._changed:  # no thread can be started at the moment: that attempt has failed
            if self.state == "waiting" and not self._closed:
                self._schedule()
        self._states.tell_all()

    def _reconnect_in_background(self, state: str = "waiting") -> None:
        with self._changed:
            if self._closed or self.state != state:
                return
            self._connects_on = get_ident()
            self._set_state("connecting")
            self._retry = None
        try:
            self._open_here(Deadline(self.timeouts.connect))
        except (
            BaseException
        ) as error:  # an exit that the user's factory asks for, too: nobody may wait for this for ever
            self._attempt_failed(state, error)
            if not isinstance(error, McpError):
                raise
            logger.info("mcpsync: server %r: attempt to connect failed: %s", self.name, error)

    def _reconnect_signed_in(self) -> None:
        self._reconnect_in_background("needs_login")

    def login_changed(self, needed: bool) -> None:
        """Calls on the link that stands can do nothing until somebody signs in, or they can again. Quick."""
        with self._changed:
            link = self._link
            if self.state == "ready":
                self._states.put("needs_login" if needed else "ready")
        if needed:
            self.login.begin()
        elif link is not None:
            self._links.submit(lambda: listen_again(link))
        self._states.tell_all()

    def reconnect(self) -> None:
        """Replace the connection now: close what there is, and open a link on this thread.

        :raises McpError: why it failed; a series of attempts goes on in the background
        """
        forbid_blocking()
        self._release(self._link, "reconnect", unused=False)
        with self._changed:
            if self._closed:
                raise ClientClosed("the client is closed", server=self.name)
            if self.state == "waiting":
                if self._retry is not None:
                    self._retry.cancel()
                    self._retry = None
                self._failures = 0
                self._set_state("dormant")
        self._ready(None, Deadline(self.timeouts.connect))

    # -- losing ------------------------------------------------------------------------------------------------

    def on_event(self, link: Link, event: Event) -> None:
        self._inbound.on_event(link, event)

    def _notified(self, method: str, params: Dict[str, Any]) -> None:
        self._keeper.notified(method, params)
        if method == "notifications/subscriptions/acknowledged":
            self.subscriptions.acknowledged(params)
        elif not self.subscriptions.brings(params):
            return
        self._settings.notified(method, params)

    def on_lost(self, link: Link, cause: McpError) -> None:
        with self._changed:
            current = self._link is link
            if current:
                self._link = None
                self._keeper.missed()
                self._previous_link = link
                self._last_error = cause
                if self._upkeep is not None:
                    self._upkeep.stop()
                if not self._closed:
                    if self._has_served(link):
                        self._failures = 0
                    self._schedule()
            next_attempt = self._next_attempt()
            closed = self._closed
            self._changed.notify_all()
        if closed:
            cause = ClientClosed("the client was closed")
        self._endings.lost(link, lambda call: self._endings.loss(cause, call, next_attempt))
        self._inbound.lost(link)
        if current and not closed:
            logger.info("mcpsync: server %r: connection lost: %s", self.name, cause.message)
            self._links.submit(lambda: link.close(Deadline(self.timeouts.close)))
            self._states.tell_all()

    def _has_served(self, link: Link) -> bool:
        """Whether a link was good for something, so that its loss begins a new series of attempts. A server that dies
        right after each start is given up like one that does not start."""
        # the condition is held
        used = self._unused_id is not None and link.session.last_id != self._unused_id
        return used or time.monotonic() - self._stands_since > max(self._settings.backoff.delays, default=0.0)

    def _release(self, link: Optional[Link], why: str, unused: bool = True) -> bool:
        """Close a link that nobody needs at the moment; the next call opens another.

        :param unused: leave it if a call is on its way
        :returns: False if it was left
        """
        try:
            with self._changed:
                if link is None or self._link is not link or self._closed:
                    return True
                # gone before the look at the calls: one that is not seen here finds the link closed and takes the next
                self._link = None
                if unused and link.working():
                    self._link = link
                    return False
                link.released = True
                self._keeper.missed()
                self._previous_link = link
                self._set_state("dormant")
                if self._upkeep is not None:
                    self._upkeep.stop()
            logger.debug("mcpsync: server %r: connection closed: %s", self.name, why)
            self._leaving.leave(link)
        except BaseException:  # Ctrl-C: what nobody holds any more is closed all the same
            self._let_go(link)
            raise
        self._states.tell_all()
        return True

    def _let_go(self, link: Optional[Link]) -> None:
        with self._changed:
            if link is None or self._link is link or self._closed:
                return
            link.released = True
            if self.state == "ready" and self._link is None:
                self._set_state("dormant")
        self._leaving.leave(link)

    def _renewed(self, link: Link, method: str, deadline: Deadline) -> Link:
        """The link after one whose session the server no longer knows."""
        self._release(link, "the server no longer knows the session", unused=False)
        return self._ready(method, deadline)

    def _list_tools_anew(self, timeouts: Timeouts) -> None:
        self.list_tools(timeouts)

    def _ping(self, link: Link) -> Callable[[Optional[float], Callable[[], None]], None]:
        revision = link.session.revision
        method = "ping" if revision is None or revision.ping else "server/discover"

        def ping(seconds: Optional[float], over: Callable[[], None]) -> None:
            self._calls.start(link, method, {}, Wanted(Timeouts(call=seconds)), lambda call: over())

        return ping

    def _set_state(self, state: str) -> None:
        # the condition is held
        if state != self.state:
            self.state = state
            self._states.put(state)

    def _tell_state(self, state: str) -> None:
        if self._settings.observer is not None:
            self._settings.observer.state_changed()
        on_state = self._settings.on_state
        if on_state is not None:
            self.dispatch.callback(lambda: on_state(state))


def _worth_retrying(error: BaseException) -> bool:
    if isinstance(error, AuthError):
        return error.passing
    return isinstance(error, McpError) and not isinstance(error, (VersionMismatch, ClientClosed))


def _list_nothing(timeouts: Timeouts) -> None:
    """Of a connection whose tools nobody lists."""
