"""URLs that a person is to visit, and the notifications that a server is done with them.

The notification may come before anybody waits for it: a server can send it right behind the error that names the URL.

Specification: `client/elicitation`, "Completion Notifications for URL Mode Elicitation" (2025-11-25).
"""

from __future__ import annotations

from collections import OrderedDict
from threading import RLock
from typing import Callable, Dict, List

__all__ = ["Visit", "Visits"]

_MOST_REMEMBERED = 256


def _nothing() -> None:
    pass


class Visit:
    """A URL that is being visited for one call.

    :ivar completed: the server has said that it is done
    :ivar over: called when it says so
    """

    def __init__(self, elicitation_id: object) -> None:
        self.elicitation_id = elicitation_id
        self.completed = False
        self.over: Callable[[], None] = _nothing


class Visits:
    """The visits of one connection."""

    def __init__(self) -> None:
        self._lock = RLock()  # guards the tables
        self._open: Dict[str, List[Visit]] = {}
        self._early: OrderedDict[str, None] = OrderedDict()

    def begin(self, elicitation_id: object) -> Visit:
        """A visit; what has no proper id is never reported as done."""
        visit = Visit(elicitation_id)
        if isinstance(elicitation_id, str):
            with self._lock:
                visit.completed = elicitation_id in self._early
                self._open.setdefault(elicitation_id, []).append(visit)
        return visit

    def end(self, visit: Visit) -> None:
        """It matters no more."""
        if isinstance(visit.elicitation_id, str):
            with self._lock:
                self._early.pop(visit.elicitation_id, None)
                left = self._open[visit.elicitation_id]
                left.remove(visit)
                if not left:
                    del self._open[visit.elicitation_id]

    def completed(self, elicitation_id: object) -> None:
        """The server is done with it."""
        if not isinstance(elicitation_id, str):
            return
        with self._lock:
            visits = list(self._open.get(elicitation_id, ()))
            if not visits:
                self._early[elicitation_id] = None
                if len(self._early) > _MOST_REMEMBERED:
                    self._early.popitem(last=False)
            for visit in visits:
                visit.completed = True
        for visit in visits:
            visit.over()
