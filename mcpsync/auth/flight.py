"""Work that many threads want at the same time, done once.

It runs on a thread of its own: whoever waits for it may be out of time before it is done, and a refresh whose answer
nobody reads would lose the token that it brought.
"""

from __future__ import annotations

import copy
import logging
import threading
from typing import Callable, List, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, McpError, RequestTimeout

__all__ = ["Flight"]

logger = logging.getLogger("mcpsync")


class Flight:
    """One run of a function.

    Without a lock, by single steps: Ctrl-C may strike, and a signal handler or a ``__del__`` may wait for the same
    flight, in the middle of each method.

    :param what: for the error of those who wait no longer
    :ivar subject: what it is about; secret, maybe
    :param run: raises :class:`~mcpsync.McpError` if it fails
    """

    def __init__(self, what: str, subject: str, run: Callable[[], None]) -> None:
        self._what = what
        self.subject = subject
        self._run = run
        self._turns: List[None] = [None]  # the thread that takes it runs the function
        self._started = False
        self._runner: Optional[int] = None
        self._over = False
        self._error: Optional[McpError] = None
        self._waiting: List[threading.Event] = []

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._over

    def start(self, name: str) -> None:
        """Run it on a thread of this name, if nobody has started it for sure: whoever was about to may never do so.

        Not a daemon, so that the interpreter does not end between a refresh and the storing of what it brought.
        """
        if self._started:
            return
        try:
            threading.Thread(target=self._fly, name=name, daemon=False).start()
        except RuntimeError as error:
            if self._take_turn():
                self._land(AuthError("no thread can be started to refresh the access token: %s" % error))
        self._started = True

    def wait(self, deadline: Deadline) -> None:
        """Wait for its end.

        :raises McpError: what it raised
        :raises RequestTimeout: it did not end by the deadline; it goes on
        """
        if not self._over and self._runner == threading.get_ident():
            raise AuthError("%s is under way on this very thread (a __del__ that runs there?)" % self._what)
        event = threading.Event()
        self._waiting.append(event)  # before the look, so that one of the two sees the other
        if not self._over and not deadline.wait(event) and not self._over:
            raise RequestTimeout("%s took too long" % self._what)
        if self._error is not None:
            raise copy.copy(self._error)  # one for each thread: a traceback belongs to one

    def _take_turn(self) -> bool:
        try:
            self._turns.pop()  # atomic
        except IndexError:
            return False
        return True

    def _fly(self) -> None:
        if not self._take_turn():
            return
        self._runner = threading.get_ident()
        error: Optional[McpError] = None
        try:
            self._run()
        except McpError as failure:
            error = failure
        except BaseException as failure:
            # a store of the host's may raise anything, SystemExit too, and those who wait have to be told; the text may
            # hold what it was given
            logger.debug("mcpsync: %s failed: %s", self._what, type(failure).__name__)
            error = AuthError("%s failed: %s" % (self._what, type(failure).__name__))
        self._land(error)

    def _land(self, error: Optional[McpError]) -> None:
        if error is not None:
            error.__traceback__ = error.__context__ = error.__cause__ = None
        self._error = error
        self._over = True
        for event in self._waiting:
            event.set()
