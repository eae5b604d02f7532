"""Several calls at the same time, for one who waits for all of them: what a model asked for in one turn."""

from __future__ import annotations

import threading
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Generic, Hashable, List, Optional, Set, TypeVar

from mcpsync.connection.threads import SIGNAL_SECONDS, Condition, Workers, forbid_blocking
from mcpsync.errors import RequestCancelled

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType

__all__ = ["Together"]

T = TypeVar("T")


class _Outcome(Generic[T]):
    """What came of a piece of work; written once, under the condition of its group."""

    def __init__(self) -> None:
        self.over = False
        self.value: List[T] = []
        self.error: Optional[BaseException] = None


class Together:
    """A group of calls. Leaving it by an exception, Ctrl-C among them, ends those that are not over.

    :param workers: lend the threads
    :param limit: the most calls at a time
    """

    def __init__(self, workers: Workers, limit: int = 16) -> None:
        self._workers = workers
        self._limit = limit
        # guards the fields below and the outcomes; waited on by those who wait for these
        self._changed = Condition()
        self._lanes: Dict[Hashable, Deque[Callable[[], None]]] = {}
        self._running = 0
        self._backlog: Deque[Callable[[], None]] = deque()
        self._futures: Set[Future[Any]] = set()
        self._ended = False

    def __enter__(self) -> Together:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        if error is not None:
            self._end()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            unfinished = list(self._futures)
        for future in unfinished:
            future.cancel()

    def call(self, submit: Callable[[], Future[T]]) -> T:
        """The result of a call, on a thread of the group; it is cancelled when the group is ended.

        :param submit: sends it
        :raises RequestCancelled: the group is ended
        """
        self._refuse_ended()
        future = submit()
        with self._changed:
            ended = self._ended
            if not ended:
                self._futures.add(future)
        if ended:  # meanwhile
            future.cancel()
        try:
            return future.result()
        finally:
            with self._changed:
                self._futures.discard(future)

    def _refuse_ended(self) -> None:
        if self._ended:
            raise RequestCancelled("it was cancelled")

    def start(self, work: Callable[[], T], lane: Optional[Hashable] = None) -> Callable[[], T]:
        """Have it done on a thread of its own, in the context of who starts it.

        :param lane: work of one lane is done one after the other, in the order of its start; None: no lane
        :returns: waits for the outcome: gives what the work gives, or raises what it raises
        """
        outcome: _Outcome[T] = _Outcome()
        context = copy_context()

        def run() -> None:
            value: List[T] = []
            error: Optional[BaseException] = None
            try:
                self._refuse_ended()
                value.append(context.run(work))
            except BaseException as raised:  # whatever it is, it is for the one who waits
                error = raised
            with self._changed:
                outcome.value, outcome.error, outcome.over = value, error, True
                self._changed.notify_all()

        if lane is None:
            self._hand_over(run)
        else:
            with self._changed:
                queue = self._lanes.setdefault(lane, deque())
                queue.append(run)
                is_first = len(queue) == 1
            if is_first:
                self._hand_over(lambda: self._drain(queue))
        return lambda: self._outcome_of(outcome)

    def _hand_over(self, task: Callable[[], None]) -> None:
        with self._changed:
            if self._running >= self._limit:
                self._backlog.append(task)
                return
            self._running += 1
        if not self._workers.submit(lambda: self._work_off(task)):  # no thread can be started: then it is done here
            self._work_off(task)

    def _work_off(self, task: Optional[Callable[[], None]]) -> None:
        while task is not None:
            task()
            with self._changed:
                task = self._backlog.popleft() if self._backlog else None
                if task is None:
                    self._running -= 1

    def _drain(self, queue: Deque[Callable[[], None]]) -> None:
        more = True
        while more:
            queue[0]()
            with self._changed:
                queue.popleft()
                more = bool(queue)

    def _outcome_of(self, outcome: _Outcome[T]) -> T:
        forbid_blocking()
        seconds = SIGNAL_SECONDS if threading.current_thread() is threading.main_thread() else None
        with self._changed:
            while not outcome.over:
                self._changed.wait(seconds)
        if outcome.error is not None:
            try:
                raise outcome.error
            finally:
                del outcome  # the traceback, which the exception keeps, would keep it
        return outcome.value[0]
