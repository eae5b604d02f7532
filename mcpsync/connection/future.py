"""What ``submit()`` gives: a ``concurrent.futures.Future`` that the server is told about when it is cancelled."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any, Callable, Optional, TypeVar

from mcpsync.connection.threads import forbid_blocking, logger
from mcpsync.errors import McpError, RequestCancelled

__all__ = ["CallFuture"]

T = TypeVar("T")


class CallFuture(Future):  # type: ignore[type-arg]  # Future is no generic at run time on Python 3.8 stubs
    """The future result of a submitted call.

    ``cancel()`` ends the call, tells the server, and wakes ``wait`` and ``as_completed``. ``result(timeout)``
    running out does not cancel. Done-callbacks run where the client's other callbacks run, never on a reader.

    :param cancel_call: ends the call; False if it is over
    :param dispatch: runs a done-callback
    :param describe: fills in what an error should name
    """

    def __init__(
        self,
        cancel_call: Callable[[], bool],
        dispatch: Callable[[Callable[[], None]], bool],
        describe: Callable[[McpError], McpError],
    ) -> None:
        super().__init__()
        self._cancel_call = cancel_call
        self._dispatch = dispatch
        self._describe = describe

    def cancel(self) -> bool:
        """End the call; the server is told.

        :returns: False if it was over already
        """
        if self.done():
            return self.cancelled()
        return self._cancel_call()

    def result(self, timeout: Optional[float] = None) -> Any:
        """The result, as the blocking method would return it.

        :param timeout: seconds to wait; None: until the call's own deadline. Running out does not cancel.
        :raises TimeoutError: it is not there yet
        :raises RequestCancelled: it was cancelled
        :raises McpError: what the blocking method would raise
        """
        if not self.done():
            forbid_blocking()
        try:
            return super().result(timeout)
        except CancelledError as error:
            raise self._cancelled_error(error) from None

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What :meth:`result` would raise, or None."""
        if not self.done():
            forbid_blocking()
        try:
            return super().exception(timeout)
        except CancelledError as error:
            raise self._cancelled_error(error) from None

    def add_done_callback(self, fn: Callable[[Any], Any]) -> None:
        """Have ``fn(future)`` run, where the client's callbacks run, when the call is over."""

        def hand_over(future: Any) -> None:
            if not self._dispatch(lambda: fn(future)):
                logger.warning("mcpsync: a done-callback was refused by the dispatcher")

        super().add_done_callback(hand_over)

    def _cancelled_error(self, error: CancelledError) -> McpError:
        return error if isinstance(error, RequestCancelled) else self._describe(RequestCancelled("it was cancelled"))

    def settle(self, result: Any, failure: Optional[BaseException]) -> None:
        """The outcome; only who ended the call may call this."""
        if isinstance(failure, RequestCancelled):
            super().cancel()
            self.set_running_or_notify_cancel()
        elif failure is not None:
            self.set_exception(failure)
        else:
            self.set_result(result)
