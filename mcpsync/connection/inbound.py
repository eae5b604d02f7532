"""What comes in beside answers: progress, notifications, and requests of a legacy server.

Runs on the reader's thread, so everything here is quick; user code is handed to the dispatcher.
"""

from __future__ import annotations

from threading import RLock
from typing import Any, Callable, Dict, List, Optional, Tuple

from mcpsync.connection.call import Call
from mcpsync.connection.calls import Calls, send_quietly
from mcpsync.connection.dispatch import Dispatch
from mcpsync.connection.link import Link
from mcpsync.connection.questions import Question, Questions
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.session import Asked, Event, Notified, Progressed, Withdrawn
from mcpsync.errors import RpcError

__all__ = ["Inbound"]


class Inbound:
    """The incoming side of one connection.

    :param calls: whose clocks and callbacks are concerned
    :param questions: answers requests
    :param dispatch: runs callbacks
    :param watchdog: keeps the deadlines that progress extends
    :param control: sends answers
    :param notified: told of each notification, on the reader's thread; must be quick
    :param ask: seconds for a person to answer
    """

    def __init__(
        self,
        calls: Calls,
        questions: Questions,
        dispatch: Dispatch,
        watchdog: Watchdog,
        control: Workers,
        notified: Callable[[str, Dict[str, Any]], None],
        ask: float,
    ) -> None:
        self._calls = calls
        self._questions = questions
        self._dispatch = dispatch
        self._watchdog = watchdog
        self._control = control
        self._notified = notified
        self._ask = ask
        self._lock = RLock()  # guards the two tables
        self._open: Dict[Tuple[int, str, Any], Question] = {}
        self._paused: Dict[int, List[Call]] = {}

    def on_event(self, link: Link, event: Event) -> None:
        """Deal with one event."""
        if isinstance(event, Progressed):
            self._progress(event.call, event.params)
        elif isinstance(event, Notified):
            if event.method == "notifications/elicitation/complete":
                self._calls.visited(event.params.get("elicitationId"))
            self._notified(event.method, event.params)
        elif isinstance(event, Asked):
            self._asked(link, event)
        elif isinstance(event, Withdrawn):
            self._withdrawn(link, event)

    def _progress(self, call: Call, params: Dict[str, Any]) -> None:
        idle = call.wanted.timeouts.idle
        if idle is not None:
            self._watchdog.extend(call, idle)
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

        def done(result: Optional[Dict[str, Any]], error: Optional[RpcError]) -> None:
            self._closed(link, key)
            if error is None:
                self._reply(link, link.session.answer(request_id, result))
            else:
                self._reply(link, link.session.refuse(request_id, error.code, error.message, error.data))

        question = Question(method, params, done)
        if self._questions.has(method):
            with self._lock:
                self._open[key] = question
                first = id(link) not in self._paused
                if first:
                    self._paused[id(link)] = []
            if first:
                self._pause(link)
        self._questions.ask(question, self._ask)

    def _withdrawn(self, link: Link, event: Withdrawn) -> None:
        key = (id(link), type(event.request_id).__name__, event.request_id)
        with self._lock:
            question = self._open.get(key)
        if question is not None:
            question.finish({}, None)  # goes nowhere: the session knows that no answer is wanted

    def _reply(self, link: Link, data: Optional[bytes]) -> None:
        if data is not None:
            self._control.submit(lambda: send_quietly(link, data, None))

    # Which call a legacy question belongs to cannot be told on a shared stream, so the clocks of all stand still.

    def _pause(self, link: Link) -> None:
        calls = link.session.in_flight()
        for call in calls:
            self._calls.pause(call)
        with self._lock:
            if id(link) in self._paused:
                self._paused[id(link)] = calls
                return
        for call in calls:  # answered already, by a handler that was very quick
            self._calls.resume(call)

    def _closed(self, link: Link, key: Tuple[int, str, Any]) -> None:
        with self._lock:
            self._open.pop(key, None)
            if any(other[0] == id(link) for other in self._open):
                return
            calls = self._paused.pop(id(link), [])
        for call in calls:
            self._calls.resume(call)

    def lost(self, link: Link) -> None:
        """The link is gone, and its questions with it."""
        with self._lock:
            questions = [question for key, question in self._open.items() if key[0] == id(link)]
        for question in questions:
            question.finish({}, None)
