"""What the last session had, the new one gets: the log level, and the subscriptions."""

from __future__ import annotations

import logging
from _thread import allocate_lock
from typing import Any, Dict, FrozenSet, Optional

from mcpsync.connection.call import Wanted
from mcpsync.connection.calls import Calls
from mcpsync.connection.link import Link
from mcpsync.connection.subscriptions import Subscriptions
from mcpsync.connection.threads import Workers, is_inner
from mcpsync.core.subscriptions import announced
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import McpError

__all__ = ["Restoring"]

logger = logging.getLogger("mcpsync")


class Restoring:
    """Asks for it on each new link.

    :param name: of the server
    :param calls: makes the requests
    :param subscriptions: what is subscribed to
    :param links: makes them while nobody waits any more
    :param lists: the list changes that are wanted
    :param seconds: for all of it
    """

    def __init__(
        self,
        name: str,
        calls: Calls,
        subscriptions: Subscriptions,
        links: Workers,
        lists: FrozenSet[str],
        seconds: float,
    ) -> None:
        self._name = name
        self._calls = calls
        self._subscriptions = subscriptions
        self._links = links
        self._lists = lists
        self._seconds = seconds

    def restore(self, link: Link, server: Dict[str, Any], log_level: Optional[str], deadline: Deadline) -> None:
        """Ask on this link. It is waited for, but not by a call that has no time for that: a server that is slow to
        answer here goes on being asked in the background.

        :param server: what it said of itself
        :param log_level: from which it shall log
        :param deadline: of who opened the link
        """
        capabilities = server.get("capabilities")
        self._subscriptions.want_lists(announced(capabilities, self._lists))
        level = log_level if _is_told_once(link, capabilities) else None
        if level is None and not self._subscriptions.wanted_on(link):
            return
        if is_inner():
            self._ask(link, level)
            return
        done = allocate_lock()
        done.acquire()

        def ask() -> None:
            try:
                self._ask(link, level)
            finally:
                done.release()

        if self._links.submit(ask):
            done.acquire(timeout=(deadline.remaining() or 0.0) / 2)  # the rest is for the call itself

    def _ask(self, link: Link, level: Optional[str]) -> None:
        deadline = Deadline(self._seconds)
        if level is not None:
            try:
                self._calls.run(link, "logging/setLevel", {"level": level}, Wanted(Timeouts(call=self._seconds)))
            except McpError as error:
                logger.warning("mcpsync: server %r: the log level was not set: %s", self._name, error)
        self._subscriptions.restore(link, deadline)


def _is_told_once(link: Link, capabilities: Any) -> bool:
    """Whether a log level is asked for by a request, and does not go with each of them."""
    revision = link.session.revision
    logs = isinstance(capabilities, dict) and "logging" in capabilities
    return logs and revision is not None and not revision.log_per_request
