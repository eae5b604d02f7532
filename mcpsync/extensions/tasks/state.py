"""What a server says of a task, read with care.

Specification: the extension ``io.modelcontextprotocol/tasks`` (SEP-2663), "Tasks"; `basic/utilities/tasks`
(2025-11-25), "Data Types".
"""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import Any, Mapping, NamedTuple, Optional

from mcpsync.core.jsonrpc import shown
from mcpsync.errors import InvalidMessage

__all__ = ["CANCELLED", "COMPLETED", "FAILED", "INPUT_REQUIRED", "WORKING", "TaskStatus", "created", "read"]

WORKING = "working"
INPUT_REQUIRED = "input_required"
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"

_OVER = frozenset((COMPLETED, FAILED, CANCELLED))
_KNOWN = _OVER | {WORKING, INPUT_REQUIRED}

_USUAL_INTERVAL = 1.0
_SHORTEST_INTERVAL = 0.05
_LONGEST_INTERVAL = 600.0


class TaskStatus(NamedTuple):
    """The state of a task, as the server said it last.

    :ivar id: of the task
    :ivar status: ``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``
    :ivar message: how far it is, in the server's words: text of a stranger
    :ivar created_at: when it was created, as ISO 8601
    :ivar updated_at: when its state was last another
    :ivar ttl: seconds from its creation for which the server keeps it; None: without end, or unsaid
    :ivar interval: seconds that the server wants between two questions after it, within bounds
    :ivar raw: the object as it came
    """

    id: str
    status: str
    message: Optional[str]
    created_at: Optional[str]
    updated_at: Optional[str]
    ttl: Optional[float]
    interval: float
    raw: Mapping[str, Any]

    @property
    def over(self) -> bool:
        """Whether it is completed, failed or cancelled, and stays so."""
        return self.status in _OVER


def created(result: Mapping[str, Any]) -> TaskStatus:
    """The task of a ``CreateTaskResult``, in the shape of either revision.

    :raises InvalidMessage: it has none
    """
    task = result.get("task")
    return read(task if isinstance(task, AbstractMapping) and "taskId" not in result else result)


def read(raw: Mapping[str, Any], task_id: Optional[str] = None) -> TaskStatus:
    """A task object; what may be left out, or is only of interest to people, is taken as unsaid if it is odd.

    :param task_id: of the task that it has to be
    :raises InvalidMessage: it is no task, has no state that exists, or is another one
    """
    said = raw.get("taskId", task_id)
    if not isinstance(said, str) or not said:
        raise InvalidMessage("the task has no id that is a string: %s" % shown(said))
    if task_id is not None and said != task_id:
        raise InvalidMessage("the server was asked after the task %.100r and tells of %.100r" % (task_id, said))
    status = raw.get("status")
    if not isinstance(status, str) or status not in _KNOWN:
        raise InvalidMessage("the task %.100r has an unknown status: %s" % (said, shown(status)))
    return TaskStatus(
        said,
        status,
        _text(raw.get("statusMessage")),
        _text(raw.get("createdAt")),
        _text(raw.get("lastUpdatedAt")),
        _seconds(raw.get("ttlMs", raw.get("ttl"))),
        _interval(raw.get("pollIntervalMs", raw.get("pollInterval"))),
        raw,
    )


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _seconds(value: Any) -> Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        return None
    return value / 1000


def _interval(value: Any) -> float:
    # a huge one must not outlast every deadline, and none at all must not become a storm of requests
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _USUAL_INTERVAL
    return min(max(_SHORTEST_INTERVAL * 1000, value), _LONGEST_INTERVAL * 1000) / 1000
