"""Calls that are submitted: a future instead of a thread that waits.

The first answer settles the future on the thread that brought it; only a call with further requests borrows a thread.
"""

from __future__ import annotations

import logging
from contextvars import copy_context
from typing import Any, Callable, Dict, Mapping, Optional, TypeVar

from mcpsync.connection.call import Call, Wanted
from mcpsync.connection.dispatch import Dispatch
from mcpsync.connection.endings import Endings, goes_on
from mcpsync.connection.further import Further
from mcpsync.connection.future import CallFuture
from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers
from mcpsync.connection.wakeup import NOBODY, LockWakeup
from mcpsync.connection.watchdog import Watchdog
from mcpsync.deadline import Deadline
from mcpsync.errors import McpError, Overloaded, RequestCancelled

__all__ = ["Submitted"]

logger = logging.getLogger("mcpsync")

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
    :param hooked: there are hooks, which want the context of who submits
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
        hooked: bool,
    ) -> None:
        self.name = name
        self.endings = endings
        self.further = further
        self._watchdog = watchdog
        self.dispatch = dispatch
        self.steps = steps
        self.begin = begin
        self._hooked = hooked

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

        call = SubmittedCall(self, method, params, wanted, convert)
        future: CallFuture[T] = call.future
        if self._hooked:
            call.context = copy_context()
        try:
            if link.transport.exchange_like:
                self._begin_later(link, call)
            else:
                # whoever submits must not wait for room: the frame goes out now or not at all
                self._begin_now(link, call, Deadline(0))
        except BaseException:
            future.abandon()
            raise
        return future

    def _begin_now(self, link: Link, call: SubmittedCall, send_by: Optional[Deadline]) -> None:
        try:
            self.begin(link, call, call.params, send_by)
        except BaseException as error:
            self.endings.end(call, RequestCancelled("it was interrupted"), "interrupted")
            self.endings.disarm(call)
            call.tell_hooks(error)
            if isinstance(error, McpError):
                call.describe(error)
            raise

    def _begin_later(self, link: Link, call: SubmittedCall) -> None:
        def drive() -> None:
            if call.more().dequeue() is None:  # it was ended before its turn came
                return
            try:
                self.begin(link, call, call.params, None)
            except McpError as error:
                call.complete(None, error)
            except Exception as error:  # an argument that fits no header, or the user's headers, signer or adapter
                link.session.retire(call)
                call.fail(error)

        call.more().queued.append(lambda error: call.complete(None, error))
        if call.wanted.length is not None:
            call.deadline = self._watchdog.arm(call, call.wanted.length)
        if not self.steps.submit(drive):
            self.endings.disarm(call)
            raise Overloaded("no thread can be started for the exchange", server=self.name, method=call.method)


class SubmittedCall(Call):
    """A call whose outcome goes to a future. It has little of its own until it needs more: many may be outstanding.

    :param made_by: the calls of its connection
    :param params: of its request
    :param convert: turns the result object into what the future gives
    :ivar future: its future
    """

    _continued = False
    """A worker has taken over and waits."""

    def __init__(
        self,
        made_by: Submitted,
        method: str,
        params: Mapping[str, Any],
        wanted: Wanted,
        convert: Callable[[Dict[str, Any]], Any],
    ) -> None:
        super().__init__(method, wanted, NOBODY)
        self._made_by = made_by
        self.params = params
        self._convert = convert
        self.future: CallFuture[Any] = CallFuture(self)

    # -- for its future ----------------------------------------------------------------------------------------

    def cancel(self) -> bool:
        """End it, and tell the server; False if it is over."""
        return self._made_by.endings.end(self, RequestCancelled("it was cancelled"), "cancelled")

    def run_last(self, callback: Callable[[], None]) -> None:
        """Run a done-callback, after what else belongs to the call."""
        lane = None if self.extras is None else self.extras.lane
        if lane is None:
            # one step, so that two threads get the same lane
            lane = self.__dict__.setdefault("_last_lane", self._made_by.dispatch.lane())
        self._made_by.dispatch.last_callback(callback, lane)

    def describe(self, error: McpError) -> McpError:
        """Fill in what an error should name."""
        return error.located(self._made_by.name, self.method, self.request_id)

    # -- its outcome -------------------------------------------------------------------------------------------

    def wake(self) -> None:
        if self._continued:
            super().wake()
            return
        result, failure = self.result, self.failure
        if result is not None and result.get("resultType", "complete") == "complete":
            self._settle(result)
        elif failure is not None and not goes_on(self, failure):
            self.fail(failure)
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Have a worker see to what it takes beside its first request."""
        self._continued = True
        self._wakeup = LockWakeup()
        endings = self._made_by.endings
        endings.between.add(self)
        self.more().queued.append(self.fail)
        if not self._made_by.steps.submit(self._run_further):
            endings.unqueue(self, Overloaded("no thread can be started for the call"))

    def _run_further(self) -> None:
        if self.more().dequeue() is None:  # it was ended before its turn came
            return
        try:
            result = self._made_by.further.run(self, self.params)
        except Exception as error:  # whatever it is, the future has to carry it
            self.fail(error)
        else:
            self._settle(result)

    def _settle(self, raw: Dict[str, Any]) -> None:
        try:
            result = self._convert(raw)
        except Exception as error:  # whatever it is, the future has to carry it
            self.fail(error)
        else:
            self._made_by.endings.disarm(self)
            if self.hooked is not None:
                self._tell_hooks_elsewhere(None)
            self.future.settle(result, None)

    def fail(self, error: Exception) -> None:
        """It ends with an error."""
        if isinstance(error, McpError):
            self.describe(error)
        endings = self._made_by.endings
        endings.drop_progress(self)
        endings.disarm(self)
        if self.hooked is not None:
            self._tell_hooks_elsewhere(error)
        self.future.settle(None, error)

    def _tell_hooks_elsewhere(self, error: Optional[Exception]) -> None:
        """On a thread that may run them: this one may be a reader."""
        if not self._made_by.steps.submit(lambda: self.tell_hooks(error)):
            logger.debug("mcpsync: no thread can be started for the hooks after %s", self.method)

    def after_fork(self, error: McpError) -> None:
        """The future sees to itself, and no worker is left."""
