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

    :param what: for the error of those who wait no longer
    :ivar subject: what it is about; secret, maybe
    :param run: raises :class:`~mcpsync.McpError` if it fails
    """

    def __init__(self, what: str, subject: str, run: Callable[[], None]) -> None:
        self._what = what
        self.subject = subject
        self._run = run
        self._lock = threading.Lock()  # guards the fields below
        self._over = False
        self._error: Optional[McpError] = None
        self._waiting: List[threading.Event] = []

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._over

    def start(self, name: str) -> None:
        """Run it on a thread of this name.

        Not a daemon, so that the interpreter does not end between a refresh and the storing of what it brought.

        :raises AuthError: no thread can be started
        """
        try:
            threading.Thread(target=self._fly, name=name, daemon=False).start()
        except RuntimeError as error:
            self._land(AuthError("no thread can be started to refresh the access token: %s" % error))

    def wait(self, deadline: Deadline) -> None:
        """Wait for its end.

        :raises McpError: what it raised
        :raises RequestTimeout: it did not end by the deadline; it goes on
        """
        event = threading.Event()
        with self._lock:
            if not self._over:
                self._waiting.append(event)
        if not self._over and not deadline.wait(event) and not self._over:
            raise RequestTimeout("%s took too long" % self._what)
        if self._error is not None:
            raise copy.copy(self._error)  # one for each thread: a traceback belongs to one

    def _fly(self) -> None:
        error: Optional[McpError] = None
        try:
            self._run()
        except McpError as failure:
            error = failure
        except Exception as failure:
            # a store of the host's may raise anything; its text may hold what it was given
            logger.debug("mcpsync: %s failed: %s", self._what, type(failure).__name__)
            error = AuthError("%s failed: %s" % (self._what, type(failure).__name__))
        self._land(error)

    def _land(self, error: Optional[McpError]) -> None:
        if error is not None:
            error.__traceback__ = error.__context__ = error.__cause__ = None
        with self._lock:
            self._error = error
            self._over = True
            waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
