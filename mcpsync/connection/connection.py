"""The connection to one server: calls, over whatever link there is."""

from __future__ import annotations

from time import monotonic
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from mcpsync.connection import lifetime
from mcpsync.connection.call import Wanted
from mcpsync.connection.future import CallFuture
from mcpsync.connection.link import Link
from mcpsync.connection.linked import LinkedConnection
from mcpsync.connection.threads import forbid_blocking
from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost
from mcpsync.transport.base import SessionLost

__all__ = ["Connection"]

_HARMLESS = (
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/list",
)


class Connection(LinkedConnection):
    """The connection to one server. Any thread may use it."""

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
        began = monotonic()
        link, left = self._link, wanted
        if link is None:
            link, left = self._reach(method, wanted, began)
        try:
            return self._calls.run(link, method, params, left)
        except ConnectionLost as error:
            link, left = self._next_link(link, error, method, wanted, began)
        return self._calls.run(link, method, params, left)

    def submit(
        self,
        method: str,
        params: Mapping[str, Any],
        convert: Callable[[Dict[str, Any]], Any],
        wanted: Optional[Wanted] = None,
    ) -> CallFuture:
        """Make a call without waiting for it.

        :param convert: turns the result object into what the future gives; must be quick
        """
        forbid_blocking()
        if self._unseen_forks:
            lifetime.after_unseen_fork()
        if wanted is None:
            wanted = Wanted(self.timeouts)
        began = monotonic()
        link, left = self._link, wanted
        if link is None:
            link, left = self._reach(method, wanted, began)
        try:
            return self._calls.submit(link, method, params, left, convert)
        except ConnectionLost as error:
            link, left = self._next_link(link, error, method, wanted, began)
        return self._calls.submit(link, method, params, left, convert)

    def _reach(self, method: str, wanted: Wanted, began: float) -> Tuple[Link, Wanted]:
        """The link for a call, opened if need be within its time, and what it wants with all that time taken off.

        :param began: when the call did, on the monotonic clock
        """
        link = self._ready(method, wanted.after(monotonic() - began).time_to_connect())
        return link, wanted.after(monotonic() - began)

    def _next_link(
        self, link: Link, error: ConnectionLost, method: str, wanted: Wanted, began: float
    ) -> Tuple[Link, Wanted]:
        """For a call whose request was not executed, or can be made again without harm: the link for another try.

        :raises ConnectionLost: it was executed, for all that is known
        """
        if isinstance(error, SessionLost):
            self._release(link, "the server no longer knows the session", unused=False)
            return self._reach(method, wanted, began)
        if _may_repeat(link, method, error):
            return link, wanted.after(monotonic() - began)
        if not link.released or error.maybe_executed:
            if error.next_attempt is None:
                error.next_attempt = self._next_attempt()
            raise error
        return self._reach(method, wanted, began)

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


def _may_repeat(link: Link, method: str, error: ConnectionLost) -> bool:
    """An exchange that broke takes one request with it: where nothing was changed by it, it is made again.

    Specification: `changelog` (2026-07-28), 9.
    """
    revision = link.session.revision
    stateless = link.transport.exchange_like and revision is not None and not revision.handshake
    return stateless and error.maybe_executed and link.cause is None and method in _HARMLESS
