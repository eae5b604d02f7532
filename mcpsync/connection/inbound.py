"""What comes in beside answers: progress, notifications, and requests of a legacy server.

Runs on the reader's thread, so everything here is quick; user code is handed to the dispatcher.
"""

from __future__ import annotations

import logging
from threading import RLock
from typing import Any, Callable, Dict, List, Optional, Tuple

from mcpsync.connection.call import Call
from mcpsync.connection.calls import Calls
from mcpsync.connection.dispatch import Dispatch
from mcpsync.connection.endings import send_quietly
from mcpsync.connection.link import Link
from mcpsync.connection.questions import Question, Questions
from mcpsync.connection.threads import Workers
from mcpsync.core import jsonrpc
from mcpsync.core.session import Asked, Event, Notified, Progressed, Withdrawn
from mcpsync.errors import RpcError

__all__ = ["Inbound"]

logger = logging.getLogger("mcpsync")

_MOST_ANSWERS = 10_000  # that may wait to be sent to a server that does not read


class Inbound:
    """The incoming side of one connection.

    :param calls: whose clocks and callbacks are concerned
    :param questions: answers requests
    :param dispatch: runs callbacks
    :param control: sends answers
    :param notified: told of each notification, on the reader's thread; must be quick
    :param ask: seconds for a person to answer
    """

    def __init__(
        self,
        calls: Calls,
        questions: Questions,
        dispatch: Dispatch,
        control: Workers,
        notified: Callable[[str, Dict[str, Any]], None],
        ask: float,
    ) -> None:
        self._calls = calls
        self._questions = questions
        self._dispatch = dispatch
        self._control = control
        self._notified = notified
        self._ask = ask
        self._lock = RLock()  # guards the table
        self._open: Dict[Tuple[int, str, Any], Question] = {}

    def on_event(self, link: Link, event: Event) -> None:
        """Deal with one event."""
        if isinstance(event, Progressed):
            self._progress(event.call, event.params)
        elif isinstance(event, Notified):
            if event.method == "notifications/elicitation/complete":
                self._calls.visits.completed(event.params.get("elicitationId"))
            self._notified(event.method, event.params)
        elif isinstance(event, Asked):
            self._asked(link, event)
        elif isinstance(event, Withdrawn):
            self._withdrawn(link, event)

    def _progress(self, call: Call, params: Dict[str, Any]) -> None:
        idle = call.wanted.timeouts.idle
        if idle is not None:
            self._calls.clock.extend(call, idle)
        more = call.extras
        if more is None:
            return
        on_progress = more.on_progress
        if on_progress is not None:
            self._dispatch.callback(lambda: on_progress(params), more.lane)

    # -- requests of the server --------------------------------------------------------------------------------

    def _asked(self, link: Link, event: Asked) -> None:
        request_id, method, params = event
        if method == "ping":
            self._reply(link, link.session.answer(request_id, {}))
            return
        key = (id(link), type(request_id).__name__, request_id)
        paused: List[Call] = []

        def done(result: Optional[Dict[str, Any]], error: Optional[RpcError]) -> None:
            with self._lock:
                self._open.pop(key, None)
            for call in paused:
                self._calls.clock.resume(call)
            self._reply(link, _answer(link, request_id, result, error))

        question = Question(method, params, done)
        if self._questions.has(method):
            # which call it belongs to cannot be told on a shared stream: the clocks of all that it may belong to stop
            paused += link.working()
            for call in paused:
                self._calls.clock.pause(call)
            with self._lock:
                self._open[key] = question
        self._questions.ask(question, self._ask)

    def _withdrawn(self, link: Link, event: Withdrawn) -> None:
        key = (id(link), type(event.request_id).__name__, event.request_id)
        with self._lock:
            question = self._open.get(key)
        if question is not None:
            question.finish({}, None)  # goes nowhere: the session knows that no answer is wanted

    def _reply(self, link: Link, data: Optional[bytes]) -> None:
        if data is None:
            return
        if self._control.waiting >= _MOST_ANSWERS:
            link.warn("unread answers", "the server asks on and on and does not read the answers: some are dropped")
            return
        self._control.submit(lambda: send_quietly(link, data, None))

    def lost(self, link: Link) -> None:
        """The link is gone, and its questions with it."""
        with self._lock:
            questions = [question for key, question in self._open.items() if key[0] == id(link)]
        for question in questions:
            question.finish({}, None)


def _answer(link: Link, request_id: Any, result: Any, error: Optional[RpcError]) -> Optional[bytes]:
    try:
        if error is None:
            return link.session.answer(request_id, result)
        return link.session.refuse(request_id, error.code, error.message, error.data)
    except ValueError as problem:  # from a handler of the user; the server has to get an answer all the same
        logger.error("mcpsync: what a handler gave has no JSON form: %s", problem)
        return link.session.refuse(request_id, jsonrpc.INTERNAL_ERROR, "the client's answer has no JSON form")
