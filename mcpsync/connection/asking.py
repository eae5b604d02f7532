"""What a server asks for through a call that it answers: input for the next round, URLs that have to be visited first.

The thread that goes on with the call waits here, while handlers answer elsewhere; its clock stands still meanwhile.

Specification: `basic/patterns/mrtr` (2026-07-28); `client/elicitation`, "URL Elicitation Required Error"
(2025-11-25).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from mcpsync.connection.call import Call, Extras
from mcpsync.connection.clock import Clock
from mcpsync.connection.questions import Question, Questions
from mcpsync.connection.visits import Visit, Visits
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core import jsonrpc, rounds
from mcpsync.errors import RpcError

__all__ = ["Asking"]


class Asking:
    """Gets what the server wants to know before it goes on with a call.

    :param questions: has them answered
    :param clock: stops the clock of the call
    :param visits: the URLs that are being visited
    :param watchdog: bounds the time for a visit
    """

    def __init__(self, questions: Questions, clock: Clock, visits: Visits, watchdog: Watchdog) -> None:
        self._questions = questions
        self._clock = clock
        self._visits = visits
        self._watchdog = watchdog

    def answers(self, call: Call, asked: Mapping[str, rounds.Question]) -> Dict[str, Any]:
        """The answer to each question, one after the other: a person is asked one thing at a time.

        :raises RpcError: nobody here answers such a question, or the one who does has refused
        :raises McpError: what ended the call meanwhile
        """
        return {key: self._answer(call, question.method, question.params) for key, question in asked.items()}

    def visit_all(self, call: Call, step: rounds.Visit) -> None:
        """Have each URL visited, and wait until the server says that it is done with it.

        :raises UrlElicitationRequired: the server's error: a URL is not visited
        :raises McpError: what ended the call meanwhile
        """
        required = call.failure
        assert required is not None
        if not self._questions.has("elicitation/create"):
            raise required
        for params in step.elicitations:
            visit = self._visits.begin(params.get("elicitationId"))
            try:
                answer = self._answer(call, "elicitation/create", {**params, "mode": "url"})
                if answer.get("action") != "accept":
                    raise required
                self._await_visit(call, visit)
                call.check_ended()
            finally:
                self._visits.end(visit)

    def _answer(self, call: Call, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        if not self._questions.has(method):
            raise RpcError.of(jsonrpc.METHOD_NOT_FOUND, "the server asks for %s, which was not offered" % method)
        more = call.more()
        outcome: List[Tuple[Optional[Dict[str, Any]], Optional[RpcError]]] = []

        def done(result: Optional[Dict[str, Any]], error: Optional[RpcError]) -> None:
            outcome.append((result, error))
            more.poke(call)

        question = Question(method, params, done)
        self._clock.pause(call)
        try:
            with _pokable(more):
                call.check_ended()
                self._questions.ask(question, call.wanted.timeouts.ask, call.pump, patient=True)
                call.wait()
            call.check_ended()
        except BaseException:
            question.finish(None, RpcError("the call is over", code=jsonrpc.INTERNAL_ERROR))
            raise
        finally:
            self._clock.resume(call)
        result, error = outcome[0]
        if result is None:
            raise error or RpcError("the question got no answer", code=jsonrpc.INTERNAL_ERROR)
        return result

    def pause(self, call: Call, seconds: float) -> None:
        """Let some time of the call pass, or end early with it.

        :raises McpError: what ended it
        """
        more = call.more()
        with _pokable(more):
            timer = self._watchdog.later(seconds, lambda: more.poke(call))  # may be due before it is given
            try:
                call.check_ended()
                call.wait()
            finally:
                timer.cancel()
        call.check_ended()

    def _await_visit(self, call: Call, visit: Visit) -> None:
        # servers may leave the notification out, so after the time for an answer the call is simply tried again
        more = call.more()
        self._clock.pause(call)
        try:
            with _pokable(more):
                timer = self._watchdog.later(call.wanted.timeouts.ask, lambda: more.poke(call))
                try:
                    call.check_ended()
                    visit.over = lambda: more.poke(call)
                    if visit.completed:
                        more.poke(call)
                    call.wait()
                finally:
                    timer.cancel()
        finally:
            self._clock.resume(call)


@contextmanager
def _pokable(more: Extras) -> Iterator[None]:
    """While the call waits for an answer of this side, and only then, it can be poked."""
    more.asking.append(None)
    try:
        yield
    finally:
        more.asking.clear()
