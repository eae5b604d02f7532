"""Calls on their way: begun, waited for, continued over several requests, timed out, cancelled.

The rule that keeps this simple: whoever takes a request out of the session's table owns its outcome. A timeout, a
cancel and an answer may come at the same moment; one of them gets the request, the others find nothing to do.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Dict, FrozenSet, Mapping, Optional, Set, TypeVar, Union

from mcpsync.connection.asking import Asking
from mcpsync.connection.call import Call, ContinuedCall, PumpedCall, Wanted
from mcpsync.connection.clock import Clock
from mcpsync.connection.dispatch import Dispatch, in_context
from mcpsync.connection.future import CallFuture
from mcpsync.connection.link import Link, loss_for
from mcpsync.connection.questions import Questions
from mcpsync.connection.threads import Workers, start_inner
from mcpsync.connection.visits import Visits
from mcpsync.connection.wakeup import Wakeups
from mcpsync.connection.watchdog import Watchdog
from mcpsync.core.repeats import Again, repeat
from mcpsync.core.rounds import Ask, Done, Failed, Rounds, Visit
from mcpsync.deadline import FOREVER, Deadline, Timeouts
from mcpsync.errors import (
    ClientClosed,
    ConnectionLost,
    HttpError,
    McpError,
    Overloaded,
    RequestCancelled,
    RequestTimeout,
    UrlElicitationRequired,
)
from mcpsync.transport.base import NO_HEADERS, Frame

__all__ = ["Calls", "send_quietly"]

logger = logging.getLogger("mcpsync")

T = TypeVar("T")

_new = tuple.__new__  # on the path of every call; the constructor of a named tuple is a Python function
_MOST_DRIVING = 4096
_LEAST = 0.001  # seconds: a timeout cannot be none
TELL_SECONDS = 5.0  # for what the control worker sends


class Calls:
    """The calls of one connection.

    :param name: of the server
    :param watchdog: keeps their deadlines
    :param dispatch: runs their callbacks
    :param control: sends what must travel without delaying anyone
    :param steps: lends threads to submitted calls
    :param questions: answers what the server asks
    :param max_rounds: the most requests for input in one call
    :param result_types: values of ``resultType`` that declared extensions add
    :param renewed: gives the link after one whose session is gone, by a deadline
    :param list_tools: lists the tools anew
    """

    def __init__(
        self,
        name: str,
        watchdog: Watchdog,
        dispatch: Dispatch,
        control: Workers,
        steps: Workers,
        questions: Questions,
        max_rounds: int,
        result_types: FrozenSet[str],
        renewed: Callable[[Link, str, Deadline], Link],
        list_tools: Callable[[Timeouts], None],
    ) -> None:
        self._name = name
        self._watchdog = watchdog
        self._dispatch = dispatch
        self._control = control
        self._steps = steps
        # each for a thread of the user's that waits; never those of submitted calls, which may wait for it in turn
        self.driving = Workers("mcpsync-%s-exchange" % name, _MOST_DRIVING)
        self._max_rounds = max_rounds
        self._result_types = result_types
        self._renewed = renewed
        self._list_tools = list_tools
        self._never_pumps = dispatch.never_pumps
        self.clock = Clock(watchdog)
        self.visits = Visits()
        self.wakeups = Wakeups()
        self._asking = Asking(questions, self.clock, self.visits, watchdog)
        self._between: Set[Call] = set()  # being continued; each step on it is atomic, as calls hash by identity

    # -- blocking ----------------------------------------------------------------------------------------------

    def run(self, link: Link, method: str, params: Mapping[str, Any], wanted: Wanted) -> Dict[str, Any]:
        """Make a call and wait for its result.

        :raises McpError: whatever ended it
        """
        if self._never_pumps or not self._dispatch.pumps_here():
            if link.transport.exchange_like:
                return self._run(link, Call(method, wanted), params)
            call = Call(method, wanted, self.wakeups.take())
            try:
                return self._run(link, call, params)
            finally:
                self.wakeups.free.append(call.done_waiting())
        pumped = PumpedCall(method, wanted)
        with self._dispatch.pumping(pumped.own_pump):
            return self._run(link, pumped, params)

    def _run(self, link: Link, call: Call, params: Mapping[str, Any]) -> Dict[str, Any]:
        try:
            try:
                if call.wanted.plain:
                    self.send(link, call, params)
                else:
                    self._begin(link, call, params)
                call.wait()
            except (ConnectionLost, HttpError) as error:  # of a request that this thread retired
                call.failure = error
            result = call.result
            if result is not None and result.get("resultType", "complete") == "complete":
                return result
            return self._further(call, params)
        except BaseException as error:
            # Ctrl-C among them: the server is told, and the connection stays as it is
            self.end(call, RequestCancelled("it was interrupted"), "interrupted")
            self._drop_progress(call)
            if isinstance(error, McpError):
                error.located(self._name, call.method, call.request_id)
            raise
        finally:
            self._watchdog.disarm(call)
            if call.extras is not None:
                call.extras.disarm()

    def _begin(self, link: Link, call: Call, params: Mapping[str, Any], send_by: Optional[Deadline] = None) -> None:
        """Prepare what the call wants, and send its first request."""
        wanted = call.wanted
        if wanted.on_progress is not None:
            more = call.more()
            more.on_progress = in_context(wanted.on_progress)
            more.lane = more.lane or self._dispatch.lane(call.pump)
        if wanted.timeouts.total is not None:
            self._arm_total(call, wanted.timeouts.total)
        self.send(link, call, params, send_by)

    def _arm_total(self, call: Call, seconds: float) -> None:
        more = call.more()
        left = max(0.0, seconds - call.wanted.spent)
        more.total_at = time.monotonic() + left
        more.total = self._watchdog.later(left, lambda: self._overdue(call, seconds))

    def send(self, link: Link, call: Call, params: Mapping[str, Any], send_by: Optional[Deadline] = None) -> None:
        """Send one request of a call. From here on its outcome comes through the call."""
        call.link = link
        wanted = call.wanted
        data = link.session.request(call, call.method, params, wanted.progress, wanted.meta, wanted.log_level)
        if call.table is None and wanted.length is not None:
            call.deadline = self._watchdog.arm(call, wanted.length)
        if call.ended is not None and link.session.retire(call):
            # it was ended before it had a request that whoever ended it could have retired
            call.complete(None, call.ended)
            return
        transport = link.transport
        try:
            if transport.exchange_like:
                self._exchange(link, call, data, params)
            else:
                if send_by is None:
                    send_by = call.deadline if call.extras is None else call.extras.sooner(call.deadline)
                transport.send(_new(Frame, (data, call.method, NO_HEADERS)), call, send_by)
        except McpError:
            if not link.session.retire(call):
                return  # ended by somebody else meanwhile, and that outcome holds
            if isinstance(link.cause, ClientClosed):
                raise self.loss(link.cause, call) from None
            raise
        if link.cause is not None and link.session.retire(call):
            # the link was lost between the look at it and the send: nobody else completes this call
            call.complete(None, self.loss(link.cause, call))

    def start(
        self, link: Link, method: str, params: Mapping[str, Any], wanted: Wanted, over: Callable[[Call], None]
    ) -> None:
        """Make a call that nobody waits for.

        :param over: called once with the call, on whatever thread completed it; must be quick
        """

        def then(call: ContinuedCall) -> None:
            self._disarm(call)
            over(call)

        call = ContinuedCall(method, wanted, then, background=True)
        try:
            self.send(link, call, params, Deadline(TELL_SECONDS))
        except McpError as error:
            call.complete(None, error)

    def _exchange(self, link: Link, call: Call, data: bytes, params: Mapping[str, Any]) -> None:
        """Drive the exchange of a request: on a worker if this thread has to run callbacks, or may not wait.

        The watchdog ends it, not the transport: the call's deadline may move while the exchange goes on.
        """
        frame = link.outgoing(data, call.method, params)
        if call.background:
            # a thread of its own: a sign of life must not wait behind calls that hang
            try:
                start_inner("mcpsync-%s-background" % self._name, lambda: link.drive(frame, call))
            except RuntimeError as error:
                raise Overloaded("no thread can be started for the exchange: %s" % error) from None
        elif call.pump is None:
            link.transport.send(frame, call, FOREVER)
        elif not self.driving.submit(lambda: link.drive(frame, call)):
            raise Overloaded("no thread can be started for the exchange")

    def listen(self, link: Link, call: Call, params: Mapping[str, Any], deadline: Deadline) -> None:
        """Send a request whose answer is a long stream."""
        if not link.transport.exchange_like:
            self.send(link, call, params, deadline)
            return
        call.link = link
        data = link.session.request(call, call.method, params)
        try:
            link.transport.listen(link.outgoing(data, call.method, params), deadline, call)
        except McpError:
            if link.session.retire(call):
                raise

    # -- submitted ---------------------------------------------------------------------------------------------

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
            elif failure is not None and not self._goes_on(call, failure):
                self._settle(future, call, lambda: _fail(failure))
            else:
                self._between.add(call)
                call.more().queued.append(lambda error: self._settle(future, call, lambda: _fail(error)))
                if not self._steps.submit(further):
                    self._unqueue(call, Overloaded("no thread can be started for the call"))

        def further() -> None:
            if call.more().dequeue() is not None:
                self._settle(future, call, lambda: convert(self._further(call, params)))

        call = ContinuedCall(method, wanted, answered)
        lane = call.more().lane = self._dispatch.lane()
        future: CallFuture[T] = CallFuture(
            lambda: self.end(call, RequestCancelled("it was cancelled"), "cancelled"),
            lambda callback: self._dispatch.last_callback(callback, lane),
            lambda error: error.located(self._name, method, call.request_id),
        )
        if link.transport.exchange_like:
            self._submit_exchange(link, call, params, lambda error: self._settle(future, call, lambda: _fail(error)))
        else:
            # whoever submits must not wait for room: the frame goes out now or not at all
            self._begin_submitted(link, call, params, Deadline(0))
        future.on_its_way()
        return future

    def _begin_submitted(
        self, link: Link, call: ContinuedCall, params: Mapping[str, Any], send_by: Optional[Deadline]
    ) -> None:
        try:
            self._begin(link, call, params, send_by)
        except BaseException as error:
            self.end(call, RequestCancelled("it was interrupted"), "interrupted")
            self._disarm(call)
            if isinstance(error, McpError):
                error.located(self._name, call.method, call.request_id)
            raise

    def _submit_exchange(
        self, link: Link, call: ContinuedCall, params: Mapping[str, Any], refuse: Callable[[Exception], None]
    ) -> None:
        def drive() -> None:
            if call.more().dequeue() is None:  # it was ended before its turn came
                return
            try:
                self._begin(link, call, params)
            except McpError as error:
                call.complete(None, error)
            except Exception as error:  # an argument that fits no header, or the user's headers, signer or adapter
                link.session.retire(call)
                refuse(error)

        call.more().queued.append(lambda error: call.complete(None, error))
        if call.wanted.length is not None:
            call.deadline = self._watchdog.arm(call, call.wanted.length)
        if not self._steps.submit(drive):
            self._disarm(call)
            raise Overloaded("no thread can be started for the exchange", server=self._name, method=call.method)

    def _settle(self, future: CallFuture[T], call: Call, outcome: Callable[[], T]) -> None:
        try:
            result = outcome()
        except Exception as error:  # whatever it is, the future has to carry it
            if isinstance(error, McpError):
                error.located(self._name, call.method, call.request_id)
            self._drop_progress(call)
            self._disarm(call)
            future.settle(None, error)
        else:
            self._disarm(call)
            future.settle(result, None)

    def _unqueue(self, call: Call, error: McpError) -> bool:
        """End a submitted call that waits for a thread; False if it does not."""
        give_up = None if call.extras is None else call.extras.dequeue()
        if give_up is None:
            return False
        self._between.discard(call)
        give_up(error)
        return True

    # -- further requests --------------------------------------------------------------------------------------

    def _further(self, call: Call, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Go on with a call whose answer was no complete result; on a thread that may wait."""
        self._between.add(call)
        try:
            result = self._further_requests(call, params)
        except BaseException:
            self._between.discard(call)
            raise
        if not self._take(call):
            assert call.ended is not None
            # an answer that is here is no less of one because its link was lost behind it
            if not isinstance(call.ended, (ClientClosed, ConnectionLost)):
                raise call.ended
        return result

    def _take(self, call: Call) -> bool:
        """Decide how a call between requests ends: with its result, or by what ended it; the first one does."""
        try:
            self._between.remove(call)  # atomic
        except KeyError:
            return False
        return True

    def _further_requests(self, call: Call, params: Mapping[str, Any]) -> Dict[str, Any]:
        link = call.link
        assert link is not None
        revision = link.session.revision
        assert revision is not None
        rounds = Rounds(call.method, params, revision, self._max_rounds, self._result_types)
        while True:
            step = rounds.step(call.result, call.failure, link.released, _is_stateless(link))
            if isinstance(step, Done):
                return step.result
            if isinstance(step, Failed):
                raise step.error
            if isinstance(step, Again):
                link = self._prepare_again(link, call, step)
                rounds.revision = link.session.revision or rounds.revision
                following = rounds.same_params()
            else:
                following = rounds.next_params(self._input(link, call, step))
            call.check_ended()
            call.again()
            try:
                self.send(link, call, following)
            except (ConnectionLost, HttpError) as error:
                call.failure = error
                continue
            if call.ended is not None and link.session.retire(call):
                self._tell(link, call, "cancelled")
            call.check_ended()
            call.wait()

    def _input(self, link: Link, call: Call, step: Union[Ask, Visit]) -> Optional[Dict[str, Any]]:
        """What the server wants before the next request."""
        if link.cause is not None:  # nobody is asked for a server that is gone
            raise self.loss(link.cause, call)
        if isinstance(step, Visit):
            self._asking.visit_all(call, step)
            return None
        return self._asking.answers(call, step.questions) if step.questions else None

    def _goes_on(self, call: Call, failure: McpError) -> bool:
        """Whether a call may go on after a failure."""
        return isinstance(failure, UrlElicitationRequired) or self._repeat(call) is not None

    def _moves_on(self, call: Call) -> bool:
        """Whether a call goes on over another link than that of its last request."""
        again = self._repeat(call)
        return again is not None and again.reason == "session"

    @staticmethod
    def _repeat(call: Call) -> Optional[Again]:
        link, failure = call.link, call.failure
        if link is None or failure is None:
            return None
        return repeat(call.method, failure, link.released, _is_stateless(link))

    def _prepare_again(self, link: Link, call: Call, again: Again) -> Link:
        """Do what has to be done before a request is made again; gives the link for it.

        :raises McpError: the failure of the request, where there is no time, or whatever ended the call meanwhile
        """
        if again.reason == "session":
            call.link = None  # so that the end of the old link is not the end of the call
            if call.wanted.timeouts.idle is not None:
                self._watchdog.disarm(call)  # armed anew when the request is sent; connecting has its own limit
            return self._renewed(link, call.method, self._until(call).sooner(call.wanted.timeouts.connect))
        if link.cause is not None:
            raise again.failure
        left = self._until(call).remaining()
        if again.reason == "tools":
            left = self._until(call).remaining()
            own = call.wanted.timeouts
            self._list_tools(
                own if left is None else own.override(call=max(left, _LEAST), idle=None, total=max(left, _LEAST))
            )
        elif again.reason == "delay":
            left = self._until(call).remaining()
            if left is not None and again.delay >= left:
                raise again.failure
            self._asking.pause(call, again.delay)
        return link

    @staticmethod
    def _until(call: Call) -> Deadline:
        """When the call has to be over."""
        return call.deadline if call.extras is None else call.extras.sooner(call.deadline)

    # -- ends --------------------------------------------------------------------------------------------------

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
            self._tell(link, call, reason)
            self._drop_progress(call)
            call.complete(None, error)
            return True
        if self._unqueue(call, error):
            return True
        if self._take(call):
            call.more().poke(call)
            return True
        return False

    def lost(self, link: Link, make: Callable[[Call], McpError]) -> None:
        """End every call of a link, with an error of its own: those in flight, and those between two requests."""
        link.fail_all(make)
        for call in list(self._between):
            if call.link is link and not self._moves_on(call):
                self.end(call, make(call), "lost")

    def expired(self, call: Call) -> None:
        """The deadline of a call has passed."""
        timeouts = call.wanted.timeouts
        self._overdue(call, timeouts.call if timeouts.idle is None else timeouts.idle)

    def _overdue(self, call: Call, seconds: Optional[float]) -> None:
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

    def _tell(self, link: Link, call: Call, reason: str) -> None:
        request_id = call.request_id
        if link.cause is not None or link.transport.abort(call, reason):
            return
        revision = link.session.revision
        if not (link.transport.exchange_like and revision is not None and revision.http_cancel):
            data = link.session.cancel(request_id, reason)
            self._control.submit(lambda: send_quietly(link, data, "notifications/cancelled"))

    def _disarm(self, call: Call) -> None:
        self._watchdog.disarm(call)
        if call.extras is not None:
            call.extras.disarm()

    @staticmethod
    def _drop_progress(call: Call) -> None:
        if call.extras is not None:
            call.extras.on_progress = None
            if call.extras.lane is not None:
                call.extras.lane.clear()


def _is_stateless(link: Link) -> bool:
    revision = link.session.revision
    return link.transport.exchange_like and revision is not None and not revision.handshake


def _fail(error: Exception) -> Any:
    raise error


def send_quietly(link: Link, data: bytes, method: Optional[str]) -> None:
    """Send what nobody waits for; that the link is gone is told to those who do."""
    try:
        link.send(data, method, None, Deadline(TELL_SECONDS))
    except McpError as error:
        logger.debug("mcpsync: %s was not sent: %s", method or "an answer", error)
