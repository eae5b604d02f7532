"""The extra steps of one call: results that ask for input first, errors that ask to visit a URL first, and failures
after which the request is made again.

One call may take several requests. This is the state machine between them: it is fed with each answer and says
whether the call is done, what has to be asked, and what the next request carries. State that the server gives
stays inside the object, so it cannot leak into another call.

Specification: `basic/patterns/mrtr` (2026-07-28); `client/elicitation`, "URL Elicitation Required Error"
(2025-11-25).
"""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, List, Mapping, NamedTuple, Optional, Union

from mcpsync.core import jsonrpc
from mcpsync.core.era import Revision
from mcpsync.core.repeats import Again, Repeats
from mcpsync.errors import InvalidMessage, McpError, ProtocolError, UrlElicitationRequired

__all__ = ["Again", "Ask", "Done", "Extended", "Failed", "Question", "Rounds", "Visit", "questions_in"]

_MAY_ASK = ("tools/call", "resources/read", "prompts/get")
_OF_ONE_ROUND = ("requestState", "inputResponses")
_MAY_BE_ASKED = ("elicitation/create", "sampling/createMessage", "roots/list")


class Question(NamedTuple):
    """One request that the server makes through a result."""

    method: str
    params: Dict[str, Any]


class Done(NamedTuple):
    """The call is over, with this result."""

    result: Dict[str, Any]


class Ask(NamedTuple):
    """Get an answer to each question, then go on with :meth:`Rounds.next_params`."""

    questions: Dict[str, Question]


class Visit(NamedTuple):
    """Have each URL visited, then go on with :meth:`Rounds.next_params`."""

    elicitations: List[Dict[str, Any]]


class Extended(NamedTuple):
    """The result is of a type that an extension adds: what it means is known elsewhere.

    :ivar kind: its ``resultType``
    """

    kind: str
    result: Dict[str, Any]


class Failed(NamedTuple):
    """The call is over, with this error."""

    error: McpError


class Rounds:
    """The rounds of one call.

    :param method: of the call
    :param params: as the caller gave them
    :ivar revision: that the session speaks
    :param limit: the most rounds that a server may ask for
    :param result_types: values of ``resultType`` that declared extensions add
    """

    def __init__(
        self,
        method: str,
        params: Mapping[str, Any],
        revision: Revision,
        limit: int = 10,
        result_types: AbstractSet[str] = frozenset(),
    ) -> None:
        self.revision = revision
        self._method = method
        self._params = params
        self._last: Mapping[str, Any] = params
        self._repeats = Repeats(method)
        self._limit = limit
        self._result_types = result_types
        self._rounds = 0
        self._state: Dict[str, Any] = {}

    def step(
        self,
        result: Optional[Dict[str, Any]],
        failure: Optional[McpError],
        unused: bool = False,
        stateless: bool = False,
    ) -> Union[Done, Ask, Visit, Again, Extended, Failed]:
        """What the answer to the last request means, or its failure; see :meth:`Repeats.step` for the flags."""
        if result is None:
            failure = failure or InvalidMessage("an empty answer")
            again = self._repeats.step(failure, unused, stateless)
            if again is not None:
                return again
            self._state = {}
            return self._failed(failure)
        self._state = {}
        kind = result.get("resultType", "complete") if self.revision.result_type else "complete"
        if kind == "complete":
            return Done(result)
        if isinstance(kind, str) and kind in self._result_types:
            return Extended(kind, result)
        if kind != "input_required":
            return Failed(InvalidMessage("the result has an unknown resultType: %s" % jsonrpc.shown(kind)))
        return self._input_required(result)

    def next_params(self, answers: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """The parameters of the next request: the caller's, the server's state, and the answers if any were asked."""
        params = {**self._params, **self._state}
        if answers:
            params["inputResponses"] = dict(answers)
        self._last = params
        return params

    def same_params(self) -> Mapping[str, Any]:
        """The parameters of the last request, for one that is made again."""
        return self._last

    def _input_required(self, result: Dict[str, Any]) -> Union[Ask, Failed]:
        if self._method not in _MAY_ASK:
            return Failed(InvalidMessage("a result that asks for input is not allowed here"))
        requests = result.get("inputRequests", {})
        if not isinstance(requests, dict) or not (requests or "requestState" in result):
            return Failed(InvalidMessage("the result asks for input but has neither inputRequests nor requestState"))
        too_many = self._one_more()
        if too_many is not None:
            return too_many
        try:
            questions = questions_in(requests)
        except InvalidMessage as error:
            return Failed(error)
        # what the caller may have given for the first request goes with that one alone
        self._params = {key: self._params[key] for key in self._params if key not in _OF_ONE_ROUND}
        if "requestState" in result:
            self._state = {"requestState": result["requestState"]}
        return Ask(questions)

    def _failed(self, failure: McpError) -> Union[Visit, Failed]:
        if not (isinstance(failure, UrlElicitationRequired) and self.revision.url_elicitation_error):
            return Failed(failure)
        listed = failure.data.get("elicitations") if isinstance(failure.data, dict) else None
        elicitations = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        if not elicitations:
            return Failed(failure)
        return self._one_more() or Visit(elicitations)

    def _one_more(self) -> Optional[Failed]:
        self._rounds += 1
        if self._rounds <= self._limit:
            return None
        return Failed(ProtocolError("the server asked for input more than %d times in one call" % self._limit))


def questions_in(requests: Mapping[str, Any]) -> Dict[str, Question]:
    """The questions of an ``inputRequests`` object, by its keys.

    :raises InvalidMessage: one is none that a client answers
    """
    questions = {}
    for key, request in requests.items():
        method = request.get("method") if isinstance(request, dict) else None
        if method not in _MAY_BE_ASKED:
            raise InvalidMessage("the result asks for %s, which no client answers" % jsonrpc.shown(method))
        params = request.get("params")
        questions[key] = Question(method, params if isinstance(params, dict) else {})
    return questions
