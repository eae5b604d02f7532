"""Tasks that are not waited for: a handle that can be stored, and taken up by another process.

Specification: the extension ``io.modelcontextprotocol/tasks`` (SEP-2663); `basic/utilities/tasks` (2025-11-25).
"""

from __future__ import annotations

import time
from collections.abc import Mapping as AbstractMapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

from mcpsync.client.features import DEFAULT
from mcpsync.core.era import REVISIONS
from mcpsync.deadline import Deadline
from mcpsync.errors import ClientClosed, ConfigError, InvalidParams, RequestTimeout, ToolError
from mcpsync.extensions.tasks.calls import handed_over
from mcpsync.extensions.tasks.following import Follower, OnStatus
from mcpsync.extensions.tasks.state import TaskStatus, created, read
from mcpsync.types.result import ToolResult

if TYPE_CHECKING:
    from mcpsync.client.client import Client
    from mcpsync.client.features import Timeout

__all__ = ["TaskHandle", "resume", "submit"]

_REQUEST_SECONDS = 30.0  # for one question after a task, where there is more time for all of them
_LEAST_SECONDS = 0.001
_NAP = 0.25  # seconds after which a thread that waits looks whether the client is still there


def submit(
    client: Client,
    name: str,
    arguments: Optional[Mapping[str, Any]] = None,
    *,
    timeout: Timeout = DEFAULT,
    meta: Optional[Mapping[str, Any]] = None,
) -> TaskHandle:
    """Call a tool, and wait only until the server has answered with a task.

    The server decides whether it does. If it answers with the result, the handle has that, and no id.

    :param client: made with ``extensions=tasks.EXTENSION``
    :param timeout: for that answer
    :param meta: further keys for ``_meta``
    :raises ConfigError: the revision that the server speaks has no tasks
    :raises RpcError: what the server answered
    :raises InvalidMessage: it answered with a task that is none

    Specification: SEP-2663, "Task Creation".
    """
    _kind_of(client)
    params: Dict[str, Any] = {"name": name}
    if arguments is not None:
        params["arguments"] = arguments
    with handed_over():
        result = client.request("tools/call", params, timeout=timeout, meta=meta)
    if result.get("resultType", "complete") == "complete":
        return TaskHandle(client, name, result=result)
    task = created(result)
    return TaskHandle(client, name, task.id, task)


def resume(client: Client, reference: Mapping[str, Any]) -> TaskHandle:
    """A handle for a task that was begun earlier, perhaps by another process. Nothing is sent.

    :param reference: what :meth:`TaskHandle.reference` gave
    :raises ValueError: it is none
    """
    reference = reference if isinstance(reference, AbstractMapping) else {}
    tool, task_id, result = (reference.get(key) for key in ("tool", "task", "result"))
    if not isinstance(tool, str):
        raise ValueError("this is no reference of a task: it names no tool")
    if isinstance(result, dict):
        return TaskHandle(client, tool, result=result)
    if not isinstance(task_id, str) or not task_id:
        raise ValueError("this is no reference of a task: it has neither its id nor a result")
    return TaskHandle(client, tool, task_id)


def _kind_of(client: Client) -> str:
    """Which tasks the server has: ``experimental`` or ``extension``.

    :raises ConfigError: its revision knows none
    """
    if client.protocol_version is None:
        client.open()
    revision = REVISIONS.get(client.protocol_version or "")
    if revision is None or revision.tasks != "extension":
        raise ConfigError("there are no tasks in the revision %s" % client.protocol_version, server=client.name)
    return revision.tasks


class TaskHandle:
    """A task at a server. Any thread may use it.

    :ivar id: of the task: who knows it may be able to get its result, so it is worth hiding. None: the server gave
        the result at once
    :ivar tool: name of the tool
    """

    def __init__(
        self,
        client: Client,
        tool: str,
        task_id: Optional[str] = None,
        task: Optional[TaskStatus] = None,
        result: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.id = task_id
        self.tool = tool
        self._client = client
        self._task = task
        self._result = result
        self._lock = Lock()  # one thread at a time follows the task, so that no question is put twice

    def __repr__(self) -> str:
        return "<TaskHandle of %r>" % self.tool

    def reference(self) -> Dict[str, Any]:
        """What :func:`resume` needs, as an object for JSON."""
        return {"tool": self.tool, "task": self.id, **({} if self._result is None else {"result": self._result})}

    def status(self, *, timeout: Timeout = DEFAULT) -> Optional[TaskStatus]:
        """Ask after the task; None if it never was one, as its result came at once.

        :raises RpcError: what the server answered: ``InvalidParams`` if it does not know the task (any more)

        Specification: SEP-2663, "Task Polling".
        """
        if self.id is None:
            return None
        return read(self._client.request("tasks/get", {"taskId": self.id}, timeout=timeout), self.id)

    def result(
        self, timeout: Optional[float] = None, *, check: bool = True, on_status: Optional[OnStatus] = None
    ) -> ToolResult:
        """Wait for the result of the tool. The handlers of the client answer what the task asks for.

        A lost connection does not end the wait, as long as a new one can be made: the task goes on at the server. Nor
        does the end of the wait end the task; :meth:`cancel` does.

        :param timeout: seconds; None: as long as it takes
        :param check: raise :class:`~mcpsync.ToolError` if the result says that the tool failed
        :param on_status: called on this thread with each new :class:`TaskStatus`
        :raises ToolError: it does, and ``check`` is set
        :raises RequestTimeout: the time is over
        :raises TaskCancelled: it was
        :raises RpcError: the task failed with it, or the server does not know the task (any more)
        """
        deadline = Deadline(timeout)
        left = deadline.remaining()
        if not self._lock.acquire(timeout=-1 if left is None else left):
            raise _too_late(self._client, timeout)
        try:
            raw = self._result
            if raw is None:
                assert self.id is not None
                channel = _Channel(self._client, deadline, timeout)
                raw = self._result = Follower(channel, self.id, self._task, on_status=on_status).run()
        finally:
            self._lock.release()
        result = ToolResult(raw)
        if check and result.is_error:
            text = result.text or "the tool reported an error with no detail"
            raise ToolError(text, result=result, server=self._client.name, tool=self.tool)
        return result

    def cancel(self, *, timeout: Timeout = DEFAULT) -> bool:
        """Ask the server to end the task. It decides whether and when that happens.

        :returns: False: there is nothing to cancel, since the task is over or unknown

        Specification: SEP-2663, "Task Cancellation".
        """
        if self.id is None:
            return False
        try:
            self._client.request("tasks/cancel", {"taskId": self.id}, timeout=timeout)
        except InvalidParams:
            return False
        return True


class _Channel:
    """Requests over whatever connection a client has at the time.

    :param seconds: that the deadline was made of
    """

    def __init__(self, client: Client, deadline: Deadline, seconds: Optional[float]) -> None:
        self._client = client
        self._deadline = deadline
        self._seconds = seconds

    def request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        left = self._left()
        limit = _REQUEST_SECONDS if left is None else min(left, _REQUEST_SECONDS)
        try:
            return self._client.request(method, params, timeout=max(limit, _LEAST_SECONDS))
        except RequestTimeout:
            if self._deadline.expired:
                raise _too_late(self._client, self._seconds) from None
            raise

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            left = self._left()
            pause = until - time.monotonic()
            if pause <= 0:
                return
            if self._client.state == "closed":
                raise ClientClosed("the client was closed", server=self._client.name, method="tasks/get")
            time.sleep(min(pause, _NAP if left is None else min(left, _NAP)))

    def ask(self, requests: Mapping[str, Any]) -> Dict[str, Any]:
        self._left()
        return self._client.ask("tasks/update", requests)

    def _left(self) -> Optional[float]:
        left = self._deadline.remaining()
        if left is not None and left <= 0:
            raise _too_late(self._client, self._seconds)
        return left


def _too_late(client: Client, seconds: Optional[float]) -> RequestTimeout:
    text = "the task is not over within %g s; it goes on" % (seconds or 0)
    return RequestTimeout(text, after=seconds, server=client.name, method="tasks/get")
