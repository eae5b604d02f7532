"""Opening a link: start the transport, find out what the server speaks, agree on it.

:mod:`mcpsync.core.negotiation` decides; this module sends, waits and starts again what died of the probe.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Tuple

from mcpsync.connection import lifetime
from mcpsync.connection.link import Link
from mcpsync.core.negotiation import Agreed, Fail, Negotiation, Restart, Send, Step
from mcpsync.deadline import Deadline
from mcpsync.errors import (
    ConnectFailed,
    ConnectRejected,
    ConnectTimeout,
    HttpError,
    McpError,
    ProcessExited,
    RequestTimeout,
    TransportError,
)
from mcpsync.passing_threads import forks_wait_for_this_thread

__all__ = ["Opened", "forget_verdict", "listen_again", "open_link", "recall_verdict", "remember_verdict"]

logger = logging.getLogger("mcpsync")

_MOST_VERDICTS = 256
_LISTEN_SECONDS = 0.3
_LEAST_GRACE = 0.35  # seconds for a server to end when the time to connect is over
_verdicts: OrderedDict[Hashable, str] = OrderedDict()
_verdicts_lock = RLock()  # guards the table


class Opened(NamedTuple):
    """An open link and what was agreed on it."""

    link: Link
    agreed: Agreed


def recall_verdict(key: Hashable) -> Optional[str]:
    """The era, ``legacy`` or ``modern``, that a server was found to be of, in this process."""
    with _verdicts_lock:
        return _verdicts.get(key)


def remember_verdict(key: Hashable, era: str) -> None:
    """Keep what was found for the next connection to the same server."""
    with _verdicts_lock:
        _verdicts[key] = era
        _verdicts.move_to_end(key)
        while len(_verdicts) > _MOST_VERDICTS:
            _verdicts.popitem(last=False)


def forget_verdict(key: Hashable) -> None:
    """What was found holds no more."""
    with _verdicts_lock:
        _verdicts.pop(key, None)


def _after_fork() -> None:
    global _verdicts_lock
    _verdicts_lock = RLock()  # a thread that is no more may have held it


lifetime.renew_in_child(_after_fork)


class _Probe:
    """A request of the negotiation: whoever completes it puts it into the queue."""

    answered = False
    table: Optional[Dict[Any, float]] = None
    link: Optional[Link] = None

    def __init__(self, method: str, answers: SimpleQueue[_Probe]) -> None:
        self.method = method
        self.request_id = 0
        self.result: Optional[Dict[str, Any]] = None
        self.failure: Optional[McpError] = None
        self._answers = answers

    def complete(self, result: Optional[Dict[str, Any]], failure: Optional[McpError]) -> None:
        self.result, self.failure = result, failure
        self.answered = True
        self._answers.put(self)

    def after_fork(self, error: McpError) -> None:
        """In a forked child: nobody waits for it there."""


def open_link(start: Callable[[Deadline], Link], negotiation: Negotiation, deadline: Deadline) -> Opened:
    """Open a link and negotiate on it. What fails is closed again.

    :param start: builds and opens a fresh link
    :raises ConnectFailed: it cannot be opened
    :raises ConnectTimeout: not in time
    :raises ProcessExited: the server died
    :raises VersionMismatch: no revision in common
    :raises RpcError: the server refused
    """
    link = start(deadline)
    opening = _Opening(link, start, negotiation, deadline)
    try:
        agreed = opening.run()
    except BaseException as error:
        manners = min(5.0, max(_LEAST_GRACE, deadline.remaining() or 0.0))
        opening.link.close(Deadline(manners if isinstance(error, Exception) else 0))  # Ctrl-C waits for none
        raise
    return Opened(opening.link, agreed)


class _Opening:
    def __init__(
        self, link: Link, start: Callable[[Deadline], Link], negotiation: Negotiation, deadline: Deadline
    ) -> None:
        self.link = link
        self._start = start
        self._negotiation = negotiation
        self._deadline = deadline
        self._answers: SimpleQueue[_Probe] = SimpleQueue()
        self._asked: List[_Probe] = []

    def run(self) -> Agreed:
        step: Optional[Step] = self._negotiation.start()
        silence: Optional[Deadline] = None
        while True:
            if isinstance(step, Agreed):
                self._agree(step)
                return step
            if isinstance(step, Fail):
                raise step.error
            if isinstance(step, Restart):
                self._restart()
                step = step.then
            if isinstance(step, Send):
                silence = None if step.silence is None else Deadline(step.silence)
                try:
                    self._send(step)
                except TransportError as cause:
                    step = self._negotiation.died(self.link.cause or cause)
                    continue
            step, silence = self._wait(silence)

    def _send(self, step: Send) -> None:
        session = self.link.session
        session.adopt(step.revision, session.log_level)
        probe = _Probe(step.method, self._answers)
        data = session.request(probe, step.method, step.params)  # type: ignore[arg-type]  # completes as a call does
        self._asked.append(probe)
        if self.link.transport.exchange_like:
            self._exchange(data, probe)
            return
        self.link.send(data, step.method, probe, self._deadline)
        if self.link.cause is not None and session.retire(probe):  # type: ignore[arg-type]
            raise self.link.cause

    def _exchange(self, data: bytes, probe: _Probe) -> None:
        """Drive the exchange of a probe on a thread that can be left behind, since this one has to keep the time."""
        link = self.link
        frame = link.outgoing(data, probe.method)

        def drive() -> None:
            forks_wait_for_this_thread()
            link.drive(frame, probe)

        try:
            threading.Thread(target=drive, name="mcpsync-%s-opening" % link.name, daemon=True).start()
        except RuntimeError as error:
            raise ConnectFailed("no thread can be started for the exchange: %s" % error) from None

    def _give_up_on(self, probes: List[_Probe]) -> None:
        """Requests that were not answered and no longer matter."""
        for probe in probes:
            if self.link.session.retire(probe):  # type: ignore[arg-type]
                probe.answered = True
                self.link.transport.abort(probe, "no longer wanted")

    def _wait(self, silence: Optional[Deadline]) -> Tuple[Optional[Step], Optional[Deadline]]:
        until = self._deadline if silence is None or silence.at > self._deadline.at else silence
        try:
            probe = self._answers.get(timeout=until.remaining())
        except Empty:
            if until is silence:
                return self._negotiation.silent(), None
            asked = " or ".join(probe.method for probe in self._asked)
            raise ConnectTimeout("the server did not answer %s in time" % asked) from None
        if isinstance(probe.failure, TransportError) and not isinstance(probe.failure, HttpError):
            return self._negotiation.died(probe.failure), silence
        return self._negotiation.answered(probe.method, probe.result, probe.failure), silence

    def _restart(self) -> None:
        logger.debug("mcpsync: the server ended when it was probed; it is started again")
        self.link.close(self._deadline.sooner(5))
        self._answers = SimpleQueue()
        self._asked = []
        self.link = self._start(self._deadline)

    def _agree(self, agreed: Agreed) -> None:
        session = self.link.session
        session.adopt(agreed.revision, session.log_level)
        self._give_up_on(self._asked)
        if agreed.handshake:
            data = session.notification("notifications/initialized")
            self.link.send(data, "notifications/initialized", None, self._deadline)
            if self.link.transport.exchange_like:
                # awaited, since a server may send its first request there as soon as a call makes it ask
                self.link.transport.listen(self.link.outgoing(b"", None), self._deadline.sooner(_LISTEN_SECONDS))


def listen_again(link: Link) -> None:
    """Open the long stream once more, which the server may have ended because nobody was signed in any longer."""
    revision = link.session.revision
    if link.transport.exchange_like and revision is not None and revision.handshake:
        with suppress(McpError):  # the link is gone
            link.transport.listen(link.outgoing(b"", None), Deadline(_LISTEN_SECONDS))


def connect_error(error: McpError, server: str) -> McpError:
    """The error for a connection that could not be made: what is no connect error by itself becomes one."""
    if isinstance(error, RequestTimeout):
        return ConnectTimeout(error.message, server=server)
    if isinstance(error, HttpError):
        return ConnectRejected(
            error.message, status=error.status, excerpt=error.excerpt, retry_after=error.retry_after, server=server
        )
    if isinstance(error, TransportError) and not isinstance(error, (ConnectFailed, ProcessExited)):
        return ConnectFailed(error.message, server=server)
    if isinstance(error, ProcessExited):
        error.maybe_executed = False  # what was sent was no call of the user's
    return error.located(server)
