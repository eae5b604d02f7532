"""The ends of calls before their answer: cancelled, timed out, lost with their link; and who decides between two.

The rule that keeps this simple: whoever takes a request out of the session's table owns its outcome. A timeout, a
cancel and an answer may come at the same moment; one of them gets the request, the others find nothing to do. Between
two requests of one call there is nothing in that table, and whoever takes the call out of ``between`` decides.
"""

from __future__ import annotations

import logging
from typing import Callable, Optional, Set

from mcpsync.connection.call import Call
from mcpsync.connection.link import Link, loss_for
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.repeats import Again, repeat
from mcpsync.deadline import Deadline
from mcpsync.errors import McpError, RequestTimeout, UrlElicitationRequired

__all__ = ["TELL_SECONDS", "Endings", "goes_on", "is_stateless", "send_quietly"]

logger = logging.getLogger("mcpsync")

TELL_SECONDS = 5.0  # for what the control worker sends


class Endings:
    """Ends the calls of one connection.

    :param name: of the server
    :param watchdog: keeps their deadlines
    :param control: sends what must travel without delaying anyone
    :ivar between: the calls between two requests; each step on it is atomic, as calls hash by identity
    """

    def __init__(self, name: str, watchdog: Watchdog, control: Workers) -> None:
        self._name = name
        self._watchdog = watchdog
        self._control = control
        self.between: Set[Call] = set()

    def end(self, call: Call, error: McpError, reason: str) -> bool:
        """End a call before its answer, and tell the server. False: it was over.

        :param error: what the call raises
        :param reason: what the server is told
        """
        if call.ended is None:
            call.ended = error  # a call between two requests sees it before it sends the next
        link = call.link
        if link is not None and link.session.retire(call):
            call.answered = True  # before the transport is told: one that has not begun with it looks at this
            self.between.discard(call)  # it is decided, whatever an extension makes of it
            self.tell(link, call, reason)
            self.drop_progress(call)
            call.complete(None, error)
            return True
        if self.unqueue(call, error):
            return True
        if self.take(call):
            call.more().poke(call)
            return True
        return False

    def lost(self, link: Link, make: Callable[[Call], McpError]) -> None:
        """End every call of a link, with an error of its own: those in flight, and those between two requests."""
        link.fail_all(make)
        for call in list(self.between):
            if call.link is link and not _moves_on(call):
                self.end(call, make(call), "lost")

    def expired(self, call: Call) -> None:
        """The deadline of a call has passed."""
        timeouts = call.wanted.timeouts
        self.overdue(call, timeouts.call if timeouts.idle is None else timeouts.idle)

    def overdue(self, call: Call, seconds: Optional[float]) -> None:
        """So many seconds were for the call, and are gone."""
        what = "no answer" if seconds != call.wanted.timeouts.idle else "no sign of life"
        error = RequestTimeout("%s within %g s" % (what, seconds or 0), after=seconds)
        self.end(call, error, "timed out")

    def loss(self, cause: McpError, call: Call, next_attempt: Optional[float] = None) -> McpError:
        """The error of one call whose link is gone."""
        link = call.link
        untold = link is not None and not link.transport.exchange_like and link.transport.abort(call, "lost")
        return loss_for(
            cause,
            server=self._name,
            method=call.method,
            request_id=call.request_id,
            next_attempt=next_attempt,
            maybe_executed=not untold,
        )

    def tell(self, link: Link, call: Call, reason: str) -> None:
        """Tell the server that a request which was retired is wanted no more, if it has to be told."""
        request_id = call.request_id
        if link.cause is not None or link.transport.abort(call, reason):
            return
        revision = link.session.revision
        if not (link.transport.exchange_like and revision is not None and revision.http_cancel):
            data = link.session.cancel(request_id, reason)
            self._control.submit(lambda: send_quietly(link, data, "notifications/cancelled"))

    def elsewhere(self, task: Callable[[], None]) -> None:
        """Run what sends something that nobody waits for."""
        self._control.submit(task)

    def take(self, call: Call) -> bool:
        """Decide how a call between requests ends: with its result, or by what ended it; the first one does."""
        try:
            self.between.remove(call)  # atomic
        except KeyError:
            return False
        return True

    def unqueue(self, call: Call, error: McpError) -> bool:
        """End a submitted call that waits for a thread; False if it does not."""
        give_up = None if call.extras is None else call.extras.dequeue()
        if give_up is None:
            return False
        self.between.discard(call)
        give_up(error)
        return True

    def disarm(self, call: Call) -> None:
        """The call is over: its deadlines matter no more."""
        self._watchdog.disarm(call)
        if call.extras is not None:
            call.extras.disarm()

    @staticmethod
    def drop_progress(call: Call) -> None:
        """The call has failed: what has not been told of its progress never will be."""
        if call.extras is not None:
            call.extras.on_progress = None
            if call.extras.lane is not None:
                call.extras.lane.clear()


def goes_on(call: Call, failure: McpError) -> bool:
    """Whether a call may go on after a failure."""
    return isinstance(failure, UrlElicitationRequired) or _repeat(call) is not None


def _moves_on(call: Call) -> bool:
    """Whether a call goes on over another link than that of its last request."""
    again = _repeat(call)
    return again is not None and again.reason == "session"


def _repeat(call: Call) -> Optional[Again]:
    link, failure = call.link, call.failure
    if link is None or failure is None:
        return None
    return repeat(call.method, failure, link.released, is_stateless(link))


def is_stateless(link: Link) -> bool:
    """Whether each request has an exchange of its own, and no session behind it."""
    revision = link.session.revision
    return link.transport.exchange_like and revision is not None and not revision.handshake


def send_quietly(link: Link, data: bytes, method: Optional[str]) -> None:
    """Send what nobody waits for; that the link is gone is told to those who do."""
    try:
        link.send(data, method, None, Deadline(TELL_SECONDS))
    except McpError as error:
        logger.debug("mcpsync: %s was not sent: %s", method or "an answer", error)
