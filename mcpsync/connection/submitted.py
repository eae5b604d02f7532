"""Calls that are submitted: a future instead of a thread that waits.

The first answer settles the future on the thread that brought it; only a call with further requests borrows a thread.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, TypeVar

from mcpsync.connection.call import Call, ContinuedCall, Wanted
from mcpsync.connection.dispatch import Dispatch
from mcpsync.connection.endings import Endings, goes_on
from mcpsync.connection.further import Further
from mcpsync.connection.future import CallFuture
from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.deadline import Deadline
from mcpsync.errors import McpError, Overloaded, RequestCancelled

__all__ = ["Submitted"]

T = TypeVar("T")

Begin = Callable[[Link, Call, Mapping[str, Any], Optional[Deadline]], None]


class Submitted:
    """Makes the calls of one connection that nobody waits for yet.

    :param name: of the server
    :param endings: ends calls
    :param further: goes on with calls
    :param watchdog: keeps their deadlines
    :param dispatch: runs their callbacks
    :param steps: lends them threads
    :param begin: prepares what a call wants, and sends its first request, by a deadline of its own if one is given
    """

    def __init__(
        self,
        name: str,
        endings: Endings,
        further: Further,
        watchdog: Watchdog,
        dispatch: Dispatch,
        steps: Workers,
        begin: Begin,
    ) -> None:
        self._name = name
        self._endings = endings
        self._further = further
        self._watchdog = watchdog
        self._dispatch = dispatch
        self._steps = steps
        self._begin = begin

    def submit(
        self,
        link: Link,
        method: str,
        params: Mapping[str, Any],
        wanted: Wanted,
        convert: Callable[[Dict[str, Any]], T],
    ) -> CallFuture[T]:
        """Make a call without waiting; ``convert`` turns the result object into what the future gives.

        :raises Overloaded: there is no room for the request now
        :raises TransportError: the link is gone
        """

        def answered(call: ContinuedCall) -> None:
            result, failure = call.result, call.failure
            if result is not None and result.get("resultType", "complete") == "complete":
                self._settle(future, call, lambda: convert(result))
            elif failure is not None and not goes_on(call, failure):
                self._settle(future, call, lambda: _fail(failure))
            else:
                self._endings.between.add(call)
                call.more().queued.append(lambda error: self._settle(future, call, lambda: _fail(error)))
                if not self._steps.submit(further):
                    self._endings.unqueue(call, Overloaded("no thread can be started for the call"))

        def further() -> None:
            if call.more().dequeue() is not None:
                self._settle(future, call, lambda: convert(self._further.run(call, params)))

        call = ContinuedCall(method, wanted, answered)
        lane = call.more().lane = self._dispatch.lane()
        future: CallFuture[T] = CallFuture(
            lambda: self._endings.end(call, RequestCancelled("it was cancelled"), "cancelled"),
            lambda callback: self._dispatch.last_callback(callback, lane),
            lambda error: error.located(self._name, method, call.request_id),
        )
        if link.transport.exchange_like:
            self._begin_later(link, call, params, lambda error: self._settle(future, call, lambda: _fail(error)))
        else:
            # whoever submits must not wait for room: the frame goes out now or not at all
            self._begin_now(link, call, params, Deadline(0))
        future.on_its_way()
        return future

    def _begin_now(
        self, link: Link, call: ContinuedCall, params: Mapping[str, Any], send_by: Optional[Deadline]
    ) -> None:
        try:
            self._begin(link, call, params, send_by)
        except BaseException as error:
            self._endings.end(call, RequestCancelled("it was interrupted"), "interrupted")
            self._endings.disarm(call)
            if isinstance(error, McpError):
                error.located(self._name, call.method, call.request_id)
            raise

    def _begin_later(
        self, link: Link, call: ContinuedCall, params: Mapping[str, Any], refuse: Callable[[Exception], None]
    ) -> None:
        def drive() -> None:
            if call.more().dequeue() is None:  # it was ended before its turn came
                return
            try:
                self._begin(link, call, params, None)
            except McpError as error:
                call.complete(None, error)
            except Exception as error:  # an argument that fits no header, or the user's headers, signer or adapter
                link.session.retire(call)
                refuse(error)

        call.more().queued.append(lambda error: call.complete(None, error))
        if call.wanted.length is not None:
            call.deadline = self._watchdog.arm(call, call.wanted.length)
        if not self._steps.submit(drive):
            self._endings.disarm(call)
            raise Overloaded("no thread can be started for the exchange", server=self._name, method=call.method)

    def _settle(self, future: CallFuture[T], call: Call, outcome: Callable[[], T]) -> None:
        try:
            result = outcome()
        except Exception as error:  # whatever it is, the future has to carry it
            if isinstance(error, McpError):
                error.located(self._name, call.method, call.request_id)
            self._endings.drop_progress(call)
            self._endings.disarm(call)
            future.settle(None, error)
        else:
            self._endings.disarm(call)
            future.settle(result, None)


def _fail(error: Exception) -> Any:
    raise error
