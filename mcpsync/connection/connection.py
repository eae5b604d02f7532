"""The connection to one server: calls, over whatever link there is, and the end of it all."""

from __future__ import annotations

import warnings
from time import monotonic
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar

from mcpsync.connection import lifetime
from mcpsync.connection.call import Wanted
from mcpsync.connection.future import CallFuture
from mcpsync.connection.link import Link
from mcpsync.connection.linked import LinkedConnection
from mcpsync.connection.settings import Settings
from mcpsync.connection.threads import forbid_blocking, is_inner
from mcpsync.deadline import Deadline
from mcpsync.errors import ClientClosed, ConnectionLost

__all__ = ["Connection"]

T = TypeVar("T")

_TELL_SECONDS = 0.5  # the most that closing waits for what still has to be told


class Connection(LinkedConnection):
    """The connection to one server. Any thread may use it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        lifetime.register(self)

    def request(self, method: str, params: Mapping[str, Any], wanted: Optional[Wanted] = None) -> Dict[str, Any]:
        """Make a call and wait for its result object.

        :raises McpError: whatever ended it
        :raises ValueError: the parameters have no JSON form
        """
        forbid_blocking()
        if self._unseen_forks:
            lifetime.after_unseen_fork()
        if wanted is None:
            wanted = Wanted(self.timeouts)
        link = self._link
        if link is None:
            link, wanted = self._reach(method, wanted)
        try:
            return self._calls.run(link, method, params, wanted)
        except ConnectionLost as error:
            self._name_next_attempt(error)
            raise

    def submit(
        self,
        method: str,
        params: Mapping[str, Any],
        convert: Callable[[Dict[str, Any]], T],
        wanted: Optional[Wanted] = None,
    ) -> CallFuture[T]:
        """Make a call without waiting for it.

        :param convert: turns the result object into what the future gives; must be quick
        """
        forbid_blocking()
        if self._unseen_forks:
            lifetime.after_unseen_fork()
        if wanted is None:
            wanted = Wanted(self.timeouts)
        link = self._link
        if link is None:
            link, wanted = self._reach(method, wanted)
        try:
            return self._calls.submit(link, method, params, wanted, convert)
        except ConnectionLost as error:
            if not link.released or error.maybe_executed:
                self._name_next_attempt(error)
                raise
        link, wanted = self._reach(method, wanted)
        return self._calls.submit(link, method, params, wanted, convert)

    def ask(self, method: str, requests: Mapping[str, Any], wanted: Wanted) -> Dict[str, Any]:
        """Have this side's handlers answer an ``inputRequests`` object; gives the ``inputResponses``.

        :param method: that will carry the answers
        :raises RpcError: nobody here answers such a question, or the one who does has refused
        """
        forbid_blocking()
        link, wanted = self._reach(method, wanted)
        return self._calls.ask(link, method, requests, wanted)

    def _reach(self, method: str, wanted: Wanted) -> Tuple[Link, Wanted]:
        """The link for a call, opened within its time, and what it wants with that time taken off."""
        began = monotonic()
        link = self._ready(method, wanted.time_to_connect())
        return link, wanted.after(monotonic() - began)

    def _name_next_attempt(self, error: ConnectionLost) -> None:
        if error.next_attempt is None:
            error.next_attempt = self._next_attempt()

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        """Send a notification.

        :raises TransportError: the link is gone
        """
        forbid_blocking()
        link = self.ready_link(method)
        link.send(link.session.notification(method, params), method, None, Deadline(self.timeouts.call))

    def ready_link(self, method: str) -> Link:
        """The link, opened if need be."""
        if self._unseen_forks:
            lifetime.after_unseen_fork()
        return self._link or self._ready(method, Wanted(self.timeouts).time_to_connect())

    def set_log_level(self, level: str) -> None:
        """Remember the level, and let it go with each request where the revision has it so."""
        self.log_level = level
        link = self._link
        if link is not None:
            link.session.adopt(link.session.revision, level)

    def background(self, task: Callable[[], None]) -> bool:
        """Run something that may make calls, on a thread of the library. False: no thread for it."""
        return self._steps.submit(task)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self, seconds: Optional[float] = None) -> None:
        """Fail what is in flight, end the server, free everything. A second call waits for the first.

        :param seconds: for all of it; ``Timeouts.close`` if not given
        """
        if is_inner():  # a __del__ that the garbage collector ran here: this thread cannot wait for its own end
            self._control.submit(lambda: self._close(seconds))
        else:
            self._close(seconds)

    def _close(self, seconds: Optional[float] = None) -> None:
        deadline = Deadline(self.timeouts.close if seconds is None else seconds)
        first = False
        try:
            with self._changed:
                if self._closed:
                    # nobody waits for a close on a control worker, whose own end the first one waits for
                    while self._closing and not is_inner() and self._changed.wait(deadline.remaining()):
                        pass
                    return
                held = (self._link, self._opening_link, self._previous_link, *self._leaving.stop())
                self._ending = list(dict.fromkeys(link for link in held if link is not None))
                stands = self._link is not None
                first = self._closed = self._closing = True
                self._set_state("closed")
                self._link = None
                if self._retry is not None:
                    self._retry.cancel()
                if self._upkeep is not None:
                    self._upkeep.stop()
                self._changed.notify_all()
            if stands and not is_inner():
                # a call that was cancelled a moment ago: the server hears of it before its stdin ends
                self._control.flush(min(_TELL_SECONDS, deadline.remaining() or 0.0))
            self._end(deadline)
        except BaseException:  # Ctrl-C: the servers are ended all the same, without manners
            if first:
                self._end(Deadline(0))
            raise
        finally:
            if first:
                lifetime.unregister(self)
                with self._changed:
                    self._closing = False
                    self._changed.notify_all()

    def _end(self, deadline: Deadline) -> None:
        for link in self._ending:
            link.lost(ClientClosed("the client was closed", server=self.name))
        for link in self._ending:
            link.close(deadline)
        self._states.tell_all()
        self._control.stop()
        self._links.stop()
        self._steps.stop()
        self._calls.driving.stop()
        self.dispatch.stop()
        self.watchdog.post(self._calls.wakeups.close())
        self.watchdog.stop()
        self.watchdog.join(deadline.remaining())
        self._control.drain(deadline.remaining())
        self._links.drain(deadline.remaining())

    def abandon(self) -> None:
        """Close in the background: nobody holds the client any more. Safe in a finalizer."""

        def forgotten() -> None:
            never_connected = self.state in ("new", "closed")
            try:
                if not never_connected:
                    warnings.warn("a client for server %r was never closed" % self.name, ResourceWarning, stacklevel=1)
            finally:
                self._close()

        # a warning may lead to code of the user's, which the watchdog does not run
        self.watchdog.post(lambda: self._control.submit(forgotten))

    def at_exit(self, seconds: float) -> None:
        """At interpreter exit: open nothing any more. The links are ended by themselves."""
        with self._changed:
            self._closed = True
            self._end_of_all = "the interpreter is shutting down"
            self.state = "closed"
            self._link = None

    def after_fork(self) -> None:
        """In a forked child: everything here belongs to the parent; the first use opens a link of its own."""
        uris = self.subscriptions.uris
        self.dispatch.after_fork()
        self._calls.wakeups.close()()  # at once: by the time of a collector their numbers may be those of other files
        self._link = None
        self._build()
        self.subscriptions.inherit(uris)
        self._keeper.after_fork()
        if self.listeners is not None:
            self.listeners.after_fork()
        if self.state != "new":
            self.state = "closed" if self._closed else "dormant"
