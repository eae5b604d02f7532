"""Requests of the server to this side: elicitation, sampling, roots.

Both eras end here: a legacy server sends a request, a modern one asks through a result. A question is answered
exactly once: by its handler, by its time running out, or not at all if the server withdrew it.
"""

from __future__ import annotations

import logging
from concurrent.futures import CancelledError
from threading import RLock
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from mcpsync.connection.dispatch import Dispatch, Pump
from mcpsync.connection.watchdog import Timer, Watchdog
from mcpsync.core import jsonrpc
from mcpsync.errors import RpcError, described

__all__ = ["Handler", "Question", "Questions"]

logger = logging.getLogger("mcpsync")


class Handler(NamedTuple):
    """What answers one method.

    :ivar ask: takes the request's params and gives an answer, or a Future of it; user code
    :ivar wire: turns the answer into the result object; may raise, which refuses the request
    """

    ask: Callable[[Dict[str, Any]], Any]
    wire: Callable[[Any, Dict[str, Any]], Dict[str, Any]]


_CROWDED_SECONDS = 2.0
USER_REJECTED = -1  # as in the examples of `client/sampling`


class Question:
    """One request of the server while it is being answered.

    :param method: what is asked
    :param params: of the request
    :param done: called once with the answer, on any thread; must be quick
    """

    def __init__(
        self,
        method: str,
        params: Dict[str, Any],
        done: Callable[[Optional[Dict[str, Any]], Optional[RpcError]], None],
    ) -> None:
        self.method = method
        self.params = params
        self.timer: Optional[Timer] = None
        self._done = done
        self._lock = RLock()  # guards the flags
        self._begun = False
        self._over = False

    def finish(self, result: Optional[Dict[str, Any]], error: Optional[RpcError]) -> bool:
        """Give the answer; False if there is one already."""
        with self._lock:
            if self._over:
                return False
            self._over = True
        if self.timer is not None:
            self.timer.cancel()
        self._done(result, error)
        return True

    def refuse_unless_begun(self) -> None:
        """No thread was free for its handler in time."""
        with self._lock:
            if self._begun:
                return
            self._begun = True
        self.finish(None, _busy(self.method))

    def run(self, handler: Handler) -> None:
        """Have the handler answer it, on a thread where user code may run."""
        with self._lock:
            if self._over or self._begun:
                return
            self._begun = True

        def resolved(future: Any) -> None:
            self._finish_with(lambda: handler.wire(future.result(), self.params))

        def ask() -> Optional[Dict[str, Any]]:
            answer = handler.ask(self.params)
            if hasattr(answer, "add_done_callback"):
                answer.add_done_callback(resolved)
                return None
            return handler.wire(answer, self.params)

        self._finish_with(ask)

    def _finish_with(self, answer: Callable[[], Optional[Dict[str, Any]]]) -> None:
        try:
            result = answer()
        except (Exception, CancelledError) as error:  # the handler is the user's
            self._failed(error)
        except BaseException as error:  # Ctrl-C, sys.exit(): for the thread, but the server has to get its answer
            self._refuse(error)
            raise
        else:
            if result is not None:
                self.finish(result, None)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, RpcError):
            self.finish(None, error)
            return
        logger.error("mcpsync: the handler for %s failed", self.method, exc_info=error)
        self._refuse(error)

    def _refuse(self, error: BaseException) -> None:
        text = "the client's handler failed: %.200s" % described(error)
        self.finish(None, RpcError(text, code=jsonrpc.INTERNAL_ERROR))

    def expire(self) -> None:
        """Nobody answered in time."""
        if self.method == "elicitation/create":
            self.finish({"action": "cancel"}, None)
        else:
            self.finish(None, RpcError("nobody answered in time", code=USER_REJECTED))


class Questions:
    """How questions get to their handlers.

    :param handlers: by method
    :param dispatch: where they run
    :param watchdog: bounds the time to answer
    """

    def __init__(self, handlers: Mapping[str, Handler], dispatch: Dispatch, watchdog: Watchdog) -> None:
        self._handlers = handlers
        self._dispatch = dispatch
        self._watchdog = watchdog

    def has(self, method: str) -> bool:
        """Whether there is a handler."""
        return method in self._handlers

    def ask(self, question: Question, seconds: float, pump: Optional[Pump] = None, patient: bool = False) -> None:
        """Have it answered, within that many seconds.

        :param pump: of the call that it belongs to, if its thread runs callbacks
        :param patient: wait for a free thread as long as it takes; else it is refused after a moment, so that a
            handler never waits behind blocked ones
        """
        handler = self._handlers.get(question.method)
        if handler is None:
            text = "this client has no handler for %s" % question.method
            question.finish(None, RpcError.of(jsonrpc.METHOD_NOT_FOUND, text))
            return
        question.timer = self._watchdog.later(seconds, question.expire)

        def crowded() -> None:
            self._watchdog.later(_CROWDED_SECONDS, question.refuse_unless_begun)

        if not self._dispatch.handler(lambda: question.run(handler), pump, None if patient else crowded):
            question.finish(None, _busy(question.method))


def _busy(method: str) -> RpcError:
    return RpcError("this client is busy: no thread is free for %s" % method, code=jsonrpc.INTERNAL_ERROR)
