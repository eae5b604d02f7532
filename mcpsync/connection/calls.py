"""Calls on their way: begun, sent, waited for.

How they end otherwise than by an answer is in :mod:`mcpsync.connection.endings`, what more they may take than one
request in :mod:`mcpsync.connection.further`, and what is not waited for in :mod:`mcpsync.connection.submitted`.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Dict, Mapping, Optional

from mcpsync.connection.asking import Asking
from mcpsync.connection.call import Call, ContinuedCall, PumpedCall, Wanted
from mcpsync.connection.clock import Clock
from mcpsync.connection.dispatch import Dispatch, in_context
from mcpsync.connection.endings import TELL_SECONDS, Endings
from mcpsync.connection.further import Further
from mcpsync.connection.hooks import Hooks
from mcpsync.connection.link import Link
from mcpsync.connection.open_call import ResultTypes
from mcpsync.connection.questions import Questions
from mcpsync.connection.submitted import Submitted
from mcpsync.connection.threads import Workers, start_inner
from mcpsync.connection.visits import Visits
from mcpsync.connection.wakeup import Wakeups
from mcpsync.connection.watchdog import Watchdog
from mcpsync.deadline import FOREVER, Deadline, Timeouts
from mcpsync.errors import ClientClosed, ConnectionLost, HttpError, McpError, Overloaded, RequestCancelled
from mcpsync.transport.base import NO_HEADERS, Frame

__all__ = ["Calls"]

_new = tuple.__new__  # on the path of every call; the constructor of a named tuple is a Python function
_MOST_DRIVING = 4096


class Calls:
    """The calls of one connection.

    :param name: of the server
    :param watchdog: keeps their deadlines
    :param dispatch: runs their callbacks
    :param endings: ends them
    :param steps: lends threads to submitted calls
    :param questions: answers what the server asks
    :param max_rounds: the most requests for input in one call
    :param result_types: what declared extensions make of the values of ``resultType`` that they add
    :param renewed: gives the link after one whose session is gone, by a deadline
    :param list_tools: lists the tools anew
    :param hooks: are told of requests
    :ivar clock: moves their deadlines
    :ivar visits: URLs that are visited for them
    :ivar driving: threads for exchanges of threads that have to run callbacks meanwhile
    :ivar wakeups: wake the threads that wait
    """

    def __init__(
        self,
        name: str,
        watchdog: Watchdog,
        dispatch: Dispatch,
        endings: Endings,
        steps: Workers,
        questions: Questions,
        max_rounds: int,
        result_types: ResultTypes,
        renewed: Callable[[Link, str, Deadline], Link],
        list_tools: Callable[[Timeouts], None],
        hooks: Optional[Hooks] = None,
    ) -> None:
        self._name = name
        self._watchdog = watchdog
        self._dispatch = dispatch
        self._endings = endings
        # each for a thread of the user's that waits; never those of submitted calls, which may wait for it in turn
        self.driving = Workers("mcpsync-%s-exchange" % name, _MOST_DRIVING)
        self._never_pumps = dispatch.never_pumps
        self.clock = Clock(watchdog)
        self.visits = Visits()
        self.wakeups = Wakeups()
        self._hooks = hooks
        if hooks is not None:
            # chosen once, so that calls without hooks never ask for them
            self.send = self._send_hooked  # type: ignore[method-assign]
        asking = Asking(questions, self.clock, self.visits, watchdog)
        untold = partial(Calls.send, self)
        self._further = Further(
            endings, asking, watchdog, self.send, untold, max_rounds, result_types, renewed, list_tools
        )
        self.submit = Submitted(
            name, endings, self._further, watchdog, dispatch, steps, self._begin, hooks is not None
        ).submit

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
            return self._further.run(call, params)
        except BaseException as error:
            # Ctrl-C among them: the server is told, and the connection stays as it is
            self._endings.end(call, RequestCancelled("it was interrupted"), "interrupted")
            if call.hooked is not None:
                call.tell_hooks(error)
            self._endings.drop_progress(call)
            if isinstance(error, McpError):
                error.located(self._name, call.method, call.request_id)
            raise
        finally:
            self._watchdog.disarm(call)
            if call.extras is not None:
                call.extras.disarm()
                if call.hooked is not None:
                    call.tell_hooks()

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
        more.total = self._watchdog.later(left, lambda: self._endings.overdue(call, seconds))

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
                raise self._endings.loss(link.cause, call) from None
            raise
        if link.cause is not None and link.session.retire(call):
            # the link was lost between the look at it and the send: nobody else completes this call
            call.complete(None, self._endings.loss(link.cause, call))

    def _send_hooked(
        self, link: Link, call: Call, params: Mapping[str, Any], send_by: Optional[Deadline] = None
    ) -> None:
        """As :meth:`send`, with the hooks told before."""
        hooks, wanted = self._hooks, call.wanted
        if hooks is None or call.background:
            Calls.send(self, link, call, params, send_by)
            return
        call.more()  # its end is looked at only where there is more to do than usual
        call.hooked = hooked = hooks.begin(link, call, params)
        call.wanted = wanted.with_meta(hooked.request.meta)
        try:
            Calls.send(self, link, call, params, send_by)
        finally:
            call.wanted = wanted

    def start(
        self, link: Link, method: str, params: Mapping[str, Any], wanted: Wanted, over: Callable[[Call], None]
    ) -> None:
        """Make a call that nobody waits for.

        :param over: called once with the call, on whatever thread completed it; must be quick
        """

        def then(call: ContinuedCall) -> None:
            self._endings.disarm(call)
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
        if call.hooked is not None:
            frame = frame._replace(headers={**call.hooked.request.headers, **frame.headers})
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

    # -- questions ---------------------------------------------------------------------------------------------

    def ask(self, link: Link, method: str, requests: Mapping[str, Any], wanted: Wanted) -> Dict[str, Any]:
        """Have this side's handlers answer an ``inputRequests`` object that no open call brought.

        :param method: that will carry the answers, for errors
        :raises McpError: as :meth:`OpenCall.ask` does
        """
        if self._never_pumps or not self._dispatch.pumps_here():
            return self._ask(link, Call(method, wanted), requests)
        pumped = PumpedCall(method, wanted)
        with self._dispatch.pumping(pumped.own_pump):
            return self._ask(link, pumped, requests)

    def _ask(self, link: Link, call: Call, requests: Mapping[str, Any]) -> Dict[str, Any]:
        call.link = link
        self._endings.between.add(call)  # so that the loss of the link ends it
        try:
            return self._further.answers(call, requests)
        except McpError as error:
            error.located(self._name, call.method)
            raise
        finally:
            self._endings.between.discard(call)
            self._endings.disarm(call)

    # -- streams -----------------------------------------------------------------------------------------------

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
