"""The further requests of one call: for input that the server asked for, URLs that were visited, and failures after
which the request is made again. :mod:`mcpsync.core.rounds` decides; this module does it, on a thread that may wait.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping as AbstractMapping
from typing import Any, Callable, Dict, Mapping, Optional, Union

from mcpsync.connection.asking import Asking
from mcpsync.connection.call import Call, ContinuedCall, Wanted
from mcpsync.connection.endings import TELL_SECONDS, Endings, is_stateless
from mcpsync.connection.link import Link
from mcpsync.connection.open_call import OpenCall, ResultTypes
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.rounds import Again, Ask, Done, Extended, Failed, Rounds, Visit, questions_in
from mcpsync.deadline import Deadline, Timeouts
from mcpsync.errors import ClientClosed, ConnectionLost, HttpError, McpError

__all__ = ["Further"]

logger = logging.getLogger("mcpsync")

_LEAST = 0.001  # seconds: a timeout cannot be none


class Further:
    """Goes on with calls whose answer was no complete result.

    :param endings: ends calls
    :param asking: gets what the server wants to know
    :param watchdog: keeps the calls' deadlines
    :param send: sends one request of a call over a link
    :param send_untold: the same, without the hooks
    :param max_rounds: the most requests for input in one call
    :param result_types: what declared extensions make of the values of ``resultType`` that they add
    :param renewed: gives the link after one whose session is gone, by a deadline
    :param list_tools: lists the tools anew
    """

    def __init__(
        self,
        endings: Endings,
        asking: Asking,
        watchdog: Watchdog,
        send: Callable[[Link, Call, Mapping[str, Any]], None],
        send_untold: Callable[[Link, Call, Mapping[str, Any]], None],
        max_rounds: int,
        result_types: ResultTypes,
        renewed: Callable[[Link, str, Deadline], Link],
        list_tools: Callable[[Timeouts], None],
    ) -> None:
        self._endings = endings
        self._asking = asking
        self._watchdog = watchdog
        self._send = send
        self._send_untold = send_untold
        self._max_rounds = max_rounds
        self._result_types = result_types
        self._renewed = renewed
        self._list_tools = list_tools

    def run(self, call: Call, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Go on with a call, to its result.

        :param params: of its first request
        :raises McpError: whatever ended it
        """
        if call.wanted.further is not None:
            call.wanted.further.append(call.method)
        self._endings.between.add(call)
        try:
            result = self._requests(call, params)
        except BaseException:
            self._endings.between.discard(call)
            raise
        if not self._endings.take(call):
            assert call.ended is not None
            # an answer that is here is no less of one because its link was lost behind it
            if not isinstance(call.ended, (ClientClosed, ConnectionLost)):
                raise call.ended
        return result

    def request(self, call: Call, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        """One more request on behalf of a call that is between two of its own, to its complete result.

        :raises McpError: its failure, or whatever ended the call
        """
        own, wanted = call.method, call.wanted
        params = dict(params)
        inner = params.pop("_meta", None)
        call.method = method
        if isinstance(inner, AbstractMapping):
            call.wanted = wanted.with_meta({**(wanted.meta or {}), **inner})
        try:
            link = call.link
            assert link is not None
            if not self._send_next(link, call, params):
                call.wait()
            return self._requests(call, params)
        except McpError as error:
            error.located(call.link.name if call.link is not None else None, method, call.request_id)
            raise
        finally:
            call.method, call.wanted = own, wanted

    def answers(self, call: Call, requests: Mapping[str, Any]) -> Dict[str, Any]:
        """The answers of this side to an ``inputRequests`` object."""
        return self._asking.answers(call, questions_in(requests))

    def pause(self, call: Call, seconds: float) -> None:
        """Let some time of the call pass."""
        self._asking.pause(call, seconds)

    def tell(self, call: Call, method: str, params: Mapping[str, Any]) -> None:
        """One more request, which nobody waits for and which may outlive the call."""
        link = call.link
        if link is None or link.cause is not None:
            return
        timeouts = call.wanted.timeouts.override(call=TELL_SECONDS, idle=None, total=None)
        told = ContinuedCall(method, Wanted(timeouts, meta=call.wanted.meta), self._endings.disarm)

        def send() -> None:
            try:
                self._send_untold(link, told, params)
            except McpError as error:
                self._endings.disarm(told)
                logger.debug("mcpsync: %s was not sent: %s", method, error)

        self._endings.elsewhere(send)

    def _requests(self, call: Call, params: Mapping[str, Any]) -> Dict[str, Any]:
        link = call.link
        assert link is not None
        revision = link.session.revision
        assert revision is not None
        rounds = Rounds(call.method, params, revision, self._max_rounds, self._result_types.keys())
        while True:
            if call.hooked is not None:
                call.tell_hooks()
            step = rounds.step(call.result, call.failure, link.released, is_stateless(link))
            if isinstance(step, Done):
                return step.result
            if isinstance(step, Failed):
                raise step.error
            if isinstance(step, Extended):
                return self._extended(call, params, step)
            if isinstance(step, Again):
                link = self._prepare_again(link, call, step)
                rounds.revision = link.session.revision or rounds.revision
                following = rounds.same_params()
            else:
                following = rounds.next_params(self._input(link, call, step))
            if not self._send_next(link, call, following):
                call.wait()

    def _send_next(self, link: Link, call: Call, params: Mapping[str, Any]) -> bool:
        """Send one more request of a call. True: it has failed already.

        :raises McpError: what ended the call meanwhile
        """
        call.check_ended()
        call.again()
        try:
            self._send(link, call, params)
        except (ConnectionLost, HttpError) as error:
            call.failure = error
            return True
        if call.ended is not None and link.session.retire(call):
            self._endings.tell(link, call, "cancelled")
        call.check_ended()
        return False

    def _extended(self, call: Call, params: Mapping[str, Any], step: Extended) -> Dict[str, Any]:
        """What an extension makes of a result of its own type."""
        function = self._result_types[step.kind]
        if function is None:
            return step.result
        result: Any = function(step.result, OpenCall(self, call, params))
        if not isinstance(result, AbstractMapping):
            raise TypeError(
                "what is declared for results of type %r gives the result object of the call, a mapping, not %s"
                % (step.kind, type(result).__name__)
            )
        return result  # type: ignore[return-value]  # any mapping will do

    def _input(self, link: Link, call: Call, step: Union[Ask, Visit]) -> Optional[Dict[str, Any]]:
        """What the server wants before the next request."""
        if link.cause is not None:  # nobody is asked for a server that is gone
            raise self._endings.loss(link.cause, call)
        if isinstance(step, Visit):
            self._asking.visit_all(call, step)
            return None
        return self._asking.answers(call, step.questions) if step.questions else None

    def _prepare_again(self, link: Link, call: Call, again: Again) -> Link:
        """Do what has to be done before a request is made again; gives the link for it.

        :raises McpError: the failure of the request, where there is no time, or whatever ended the call meanwhile
        """
        if again.reason == "session":
            call.link = None  # so that the end of the old link is not the end of the call
            if call.wanted.timeouts.idle is not None:
                self._watchdog.disarm(call)  # armed anew when the request is sent; connecting has its own limit
            return self._renewed(link, call.method, _until(call).sooner(call.wanted.timeouts.connect))
        if link.cause is not None:
            raise again.failure
        left = _until(call).remaining()
        if again.reason == "tools":
            own = call.wanted.timeouts
            self._list_tools(
                own if left is None else own.override(call=max(left, _LEAST), idle=None, total=max(left, _LEAST))
            )
        elif again.reason == "delay":
            if left is not None and again.delay >= left:
                raise again.failure
            self._asking.pause(call, again.delay)
        return link


def _until(call: Call) -> Deadline:
    """When the call has to be over."""
    return call.deadline if call.extras is None else call.extras.sooner(call.deadline)
