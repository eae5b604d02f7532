"""Waiting for somebody to sign in, in this process or in another: connecting again would not help until then."""

from __future__ import annotations

import logging
from threading import RLock
from typing import Callable, Optional

from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog
from mcpsync.errors import McpError, described

__all__ = ["AwaitingLogin"]

logger = logging.getLogger("mcpsync")

_GAP = 5.0  # seconds between looks


class AwaitingLogin:
    """Looks from time to time, as long as it is necessary.

    :param watchdog: keeps the timer
    :param workers: look and go on, which may take its time
    :param signed_in: whether somebody has; None: nothing that would know
    :param resume: goes on with the connection, if that has waited for it
    """

    def __init__(
        self,
        watchdog: Watchdog,
        workers: Workers,
        signed_in: Optional[Callable[[], bool]],
        resume: Callable[[], None],
    ) -> None:
        self._watchdog = watchdog
        self._workers = workers
        self._signed_in = signed_in
        self._resume = resume
        self._lock = RLock()  # guards the flag
        self._waits = False

    def begin(self) -> None:
        """It is necessary. Quick."""
        with self._lock:
            if self._waits or self._signed_in is None:
                return
            self._waits = True
        self._watchdog.later(_GAP, self._due)

    def _due(self) -> None:
        if not self._workers.submit(self._look):  # no thread can be started at the moment, or ever again
            self._watchdog.later(_GAP, self._due)

    def _look(self) -> None:
        found = False
        try:
            found = self.look()
        except Exception as error:
            # the store may be the user's, and out of reach for a while; what it raises may hold what it was given
            told = described(error) if isinstance(error, (OSError, McpError)) else type(error).__name__
            logger.warning("mcpsync: whether somebody has signed in could not be found out: %s", told)
        if not found:
            self._watchdog.later(_GAP, self._due)

    def look(self) -> bool:
        """Look now. True: somebody has signed in, and the connection goes on in the background."""
        if self._signed_in is None or not self._signed_in():
            return False
        with self._lock:
            self._waits = False
        self._workers.submit(self._resume)
        return True
