"""A call: what one invocation owns from its first request to its outcome.

A *request* is one id on the wire; a call may take several. Whoever retires the request in the session's table
completes the call, so :meth:`Call.complete` runs exactly once per request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional

from mcpsync.connection.dispatch import Lane, Pump
from mcpsync.connection.wakeup import NOBODY, LockWakeup, Wakeup
from mcpsync.deadline import FOREVER, Deadline, Timeouts

if TYPE_CHECKING:
    from contextvars import Context

    from mcpsync.connection.hooks import Running
    from mcpsync.connection.link import Link
    from mcpsync.connection.watchdog import Timer
    from mcpsync.errors import McpError

__all__ = ["Call", "ContinuedCall", "PumpedCall", "Wanted"]

_LEAST_SECONDS = 0.001


class Wanted:
    """What one call wants beside its parameters. Made once for many calls where nothing special is wanted.

    :ivar timeouts: how long it may take
    :ivar length: seconds of its running deadline: ``idle`` if that is set, else ``call``
    :ivar on_progress: called with each progress notification's params
    :ivar progress: whether progress is wanted
    :ivar meta: further keys for ``_meta``
    :ivar log_level: from which the server shall log about this request (modern)
    :ivar plain: nothing has to be prepared before the request is sent
    :ivar spent: seconds of its time that are gone already
    :ivar further: gets an item when the call takes more than its first request; None: nobody wants to know
    """

    __slots__ = ("further", "length", "log_level", "meta", "on_progress", "plain", "progress", "spent", "timeouts")

    def __init__(
        self,
        timeouts: Timeouts,
        on_progress: Optional[Callable[[Dict[str, Any]], Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        log_level: Optional[str] = None,
    ) -> None:
        self.timeouts = timeouts
        self.length = timeouts.call if timeouts.idle is None else timeouts.idle
        self.on_progress = on_progress
        self.progress = on_progress is not None
        self.meta = meta
        self.log_level = log_level
        self.plain = on_progress is None and timeouts.total is None
        self.spent = 0.0
        self.further: Optional[List[str]] = None

    def with_meta(self, meta: Mapping[str, Any]) -> Wanted:
        """The same with these keys for ``_meta``."""
        other = self.after(0.0)
        other.length = self.length
        other.meta = meta or None
        return other

    def after(self, seconds: float) -> Wanted:
        """The same, by a call that so much more of its time is gone of: for its connection, or for a first request."""
        later = Wanted(self.timeouts, self.on_progress, self.meta, self.log_level)
        later.spent = self.spent + seconds
        later.further = self.further
        if self.timeouts.idle is None and self.length is not None:
            later.length = max(_LEAST_SECONDS, self.length - seconds)
        return later

    def time_to_connect(self) -> Deadline:
        """Until when its connection has to be there."""
        timeouts = self.timeouts
        deadline = Deadline(timeouts.connect)
        if timeouts.idle is None:
            deadline = deadline.sooner(self.length)
        return deadline if timeouts.total is None else deadline.sooner(max(0.0, timeouts.total - self.spent))


class Call:
    """A call that a thread waits for.

    :param wakeup: wakes the thread; a lock if none is given
    :ivar method: MCP method
    :ivar wanted: what its caller wants
    :ivar request_id: id of the request that it waits for at the moment
    :ivar link: the link that the request went over
    :ivar woken: whether it has been woken since it last waited
    :ivar answered: whether that request has been retired
    :ivar result: its answer's result object
    :ivar failure: or why there is none
    :ivar ended: why the call as a whole is over before its last answer: it was cancelled, or took too long
    :ivar deadline: when the call has to be answered, all pauses so far added
    :ivar hooked: the request, where hooks were told of it and are to be told of its end
    :ivar context: in which hooks are told of requests; None: in that of the thread
    :ivar extras: what only some calls have; None for the rest, which spares the hot path
    """

    # Class attributes are the values at first: an instance sets three of its own, which is what the hot path pays.
    request_id = 0
    link: Optional[Link] = None
    answered = False
    woken = False
    result: Optional[Dict[str, Any]] = None
    failure: Optional[McpError] = None
    ended: Optional[McpError] = None
    deadline: Deadline = FOREVER
    table: Optional[Dict[Any, float]] = None
    extras: Optional[Extras] = None
    pump: Optional[Pump] = None
    hooked: Optional[Running] = None
    context: Optional[Context] = None
    background = False
    """Nobody waits for its answer: a stream of notifications, a sign of life."""

    def __init__(self, method: str, wanted: Wanted, wakeup: Optional[Wakeup] = None) -> None:
        self.method = method
        self.wanted = wanted
        self._wakeup = LockWakeup() if wakeup is None else wakeup

    def more(self) -> Extras:
        """The extras, made on first use."""
        extras = self.extras
        if extras is None:
            # one step, so that two threads get the same ones
            extras = self.__dict__.setdefault("extras", Extras(self.wanted.timeouts))
        return extras

    def complete(self, result: Optional[Dict[str, Any]], failure: Optional[McpError]) -> None:
        """The outcome of the request. Only who retired it may call this; any thread, and quick."""
        self.result = result
        self.failure = failure
        self.answered = True
        self.wake()

    def wake(self) -> None:
        """End one :meth:`wait`."""
        self.woken = True
        self._wakeup.wake()

    def wait(self) -> None:
        """Wait to be woken. The watchdog sees to it that this happens."""
        while not self.woken:
            self._wakeup.wait()
        self.woken = False

    def done_waiting(self) -> Wakeup:
        """Nobody waits for it any more: gives what woke the thread."""
        wakeup, self._wakeup = self._wakeup, NOBODY
        return wakeup

    def tell_hooks(self, error: Optional[BaseException] = None) -> None:
        """The request is over: tell the hooks that were told of it. Whoever does so first is the one."""
        hooked = self.__dict__.pop("hooked", None)  # atomic
        if hooked is not None:
            hooked.over(self.result, self.failure or (error if self.result is None else None))

    def check_ended(self) -> None:
        """
        :raises McpError: what ended the call as a whole, if it is over
        """
        if self.ended is not None:
            raise self.ended

    def after_fork(self, error: McpError) -> None:
        """In a forked child: who waits for it there, if anybody does, waits no longer."""
        if self.extras is not None and self.extras.lane is not None:
            self.extras.lane.after_fork()
        if self.pump is not None:
            self.pump.after_fork()
        self._wakeup.after_fork()
        self.complete(None, error)

    def again(self) -> None:
        """Make ready for another request."""
        self.answered = False
        self.result = None
        self.failure = None


class Extras:
    """What a call has that is watched, asked about or bounded in total.

    :ivar on_progress: the user's callback, bound to the caller's context
    :ivar lane: on which its callbacks run in order
    :ivar total: alarm for ``Timeouts.total``
    :ivar total_at: when that is due, on the monotonic clock
    :ivar pauses: how many reasons there are for its clock to stand still
    :ivar pause_left: seconds that its clock may still stand still for
    :ivar paused_since: when it was stopped, if it is
    :ivar seconds_left: of its time at that moment
    :ivar queued: holds one item while the call waits for a thread to go on with it: what ends it with an error
    :ivar asking: holds one item while the call waits for an answer of this side; who takes it wakes the call
    """

    __slots__ = (
        "asking",
        "lane",
        "on_progress",
        "pause_left",
        "paused_since",
        "pauses",
        "queued",
        "seconds_left",
        "total",
        "total_at",
    )

    def __init__(self, timeouts: Timeouts) -> None:
        self.on_progress: Optional[Callable[..., Any]] = None
        self.lane: Optional[Lane] = None
        self.total: Optional[Timer] = None
        self.total_at: Optional[float] = None
        self.pauses = 0
        self.pause_left = timeouts.ask
        self.paused_since: Optional[float] = None
        self.seconds_left = 0.0
        self.queued: List[Callable[[McpError], None]] = []
        self.asking: List[None] = []

    def dequeue(self) -> Optional[Callable[[McpError], None]]:
        """Take the call out of the queue for a thread; only one who does this gets something."""
        try:
            return self.queued.pop()  # atomic
        except IndexError:
            return None

    def sooner(self, deadline: Deadline) -> Deadline:
        """The deadline, or the moment at which the total is over."""
        return deadline if self.total_at is None or deadline.at <= self.total_at else Deadline.at_moment(self.total_at)

    def disarm(self) -> None:
        """The call is over: the total no longer matters."""
        if self.total is not None:
            self.total.cancel()

    def poke(self, call: Call) -> None:
        """Wake the call if it waits for an answer of this side; exactly one poke per wait does."""
        try:
            self.asking.pop()  # atomic: one thread gets the item
        except IndexError:
            return
        call.wake()


class PumpedCall(Call):
    """A call whose thread runs its callbacks while it waits."""

    def __init__(self, method: str, wanted: Wanted) -> None:
        super().__init__(method, wanted)
        self.pump = self.own_pump = Pump()

    def wake(self) -> None:
        self.own_pump.finish()

    def wait(self) -> None:
        self.own_pump.run()


class ContinuedCall(Call):
    """A call whose answer is handed to a function instead of a waiting thread.

    :param then: called with the call, on the thread that completed it; must be quick
    :param background: nobody waits for its answer
    """

    def __init__(
        self, method: str, wanted: Wanted, then: Callable[[ContinuedCall], None], background: bool = False
    ) -> None:
        super().__init__(method, wanted, NOBODY)
        self.background = background
        self._then = then

    def wake(self) -> None:
        self._then(self)

    def after_fork(self, error: McpError) -> None:
        """Nobody is left that it would matter to."""
