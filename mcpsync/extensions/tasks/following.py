"""A task is followed to its end: asked after at the server's interval, its questions answered on the way.

The rules are the same for a call that waits and for a handle; what differs is the channel that requests go over.

Specification: the extension ``io.modelcontextprotocol/tasks`` (SEP-2663), "Task Polling", "Task Update Requests";
`basic/utilities/tasks` (2025-11-25), "Input Required Status", "Result Retrieval".
"""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import Any, Callable, Dict, Mapping, Optional, Protocol, Set

from mcpsync.core.jsonrpc import INTERNAL_ERROR
from mcpsync.errors import (
    ConnectFailed,
    ConnectionLost,
    HttpError,
    InvalidMessage,
    InvalidParams,
    McpError,
    ProtocolError,
    RequestTimeout,
    RpcError,
)
from mcpsync.extensions.tasks.state import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED, TaskStatus, read

__all__ = ["Channel", "Follower", "OnStatus", "TaskCancelled"]

OnStatus = Callable[[TaskStatus], Any]

_MOST_FAILURES = 10  # one after the other, before the last of them is the outcome
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 10.0  # seconds between two of them, unless the server's interval is longer
_MOST_QUESTIONS = 100  # of one task; a person is asked each of them
_TOO_MANY = 429
_SERVER_ERROR = 500


class TaskCancelled(McpError):
    """A task was cancelled: by the server, or by whoever asked it to."""


class Channel(Protocol):
    """What requests about a task go over; each method raises what ends the wait."""

    def request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]: ...

    def wait(self, seconds: float) -> None: ...

    def ask(self, requests: Mapping[str, Any]) -> Dict[str, Any]: ...


class Follower:
    """Follows one task.

    :param channel: what its requests go over
    :param task_id: whose it is
    :param task: its state when it was created; None: nothing is known of it yet
    :param experimental: it is one of 2025-11-25, whose result is fetched by a request of its own
    :param on_status: called with each new state or message
    """

    def __init__(
        self,
        channel: Channel,
        task_id: str,
        task: Optional[TaskStatus] = None,
        experimental: bool = False,
        on_status: Optional[OnStatus] = None,
    ) -> None:
        self._channel = channel
        self._id = task_id
        self._task = task
        self._experimental = experimental
        self._on_status = on_status
        self._answers: Dict[str, Any] = {}
        self._told: Set[str] = set()
        self._failures = 0

    def run(self) -> Dict[str, Any]:
        """Follow it to the result of the request that became the task.

        :raises RpcError: the task failed with it, or the server does not know the task
        :raises TaskCancelled: it was
        :raises InvalidMessage: what the server says of it makes no sense
        :raises McpError: what ended the wait
        """
        if self._task is not None:
            self._say(self._task)
            if not self._task.over:  # what it says when it is created has neither result nor questions
                self._channel.wait(self._task.interval)
        while True:
            try:
                task = self._ask_after()
                result = self._look(task)
            except McpError as error:
                self._pause_after(error)
                continue
            if result is not None:
                return result
            self._failures = 0
            self._channel.wait(task.interval)

    def _pause_after(self, error: McpError) -> None:
        self._failures += 1
        if not _passes(error) or self._failures > _MOST_FAILURES:
            raise error
        interval = 0.0 if self._task is None else self._task.interval
        # whoever has no time left, or a connection that is gone for good, learns so here
        self._channel.wait(max(interval, min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)))

    def _ask_after(self) -> TaskStatus:
        try:
            task = read(self._channel.request("tasks/get", {"taskId": self._id}), self._id)
        except InvalidParams as error:
            raise RpcError.of(
                error.code,
                "the server does not know the task %.100r, or not any more: %s" % (self._id, error.message),
                error.data,
            ) from error
        before, self._task = self._task, task
        if before is None or (task.status, task.message) != (before.status, before.message):
            self._say(task)
        return task

    def _say(self, task: TaskStatus) -> None:
        if self._on_status is not None:
            self._on_status(task)

    def _look(self, task: TaskStatus) -> Optional[Dict[str, Any]]:
        """The result, if there is one. Questions are answered."""
        if task.status == CANCELLED:
            raise TaskCancelled("the task %.100r was cancelled%s" % (task.id, _because(task)))
        if self._experimental:
            # questions come as requests of the server's own, on the stream of this answer
            if task.over or task.status == INPUT_REQUIRED:
                return self._channel.request("tasks/result", {"taskId": task.id})
            return None
        if task.status == COMPLETED:
            return _result_of(task)
        if task.status == FAILED:
            raise _error_of(task)
        if task.status == INPUT_REQUIRED:
            self._answer(task)
        return None

    def _answer(self, task: TaskStatus) -> None:
        requests = task.raw.get("inputRequests", {})
        if not isinstance(requests, AbstractMapping):
            raise InvalidMessage("the task %.100r asks for input with inputRequests that are no object" % task.id)
        # the server may go on naming a question for a while after its answer
        new = {key: request for key, request in requests.items() if key not in self._answers}
        if len(self._answers) + len(new) > _MOST_QUESTIONS:
            raise ProtocolError("the task %.100r asked for input more than %d times" % (task.id, _MOST_QUESTIONS))
        for key, request in new.items():
            # one at a time: an answer that a person has given is kept if the next question fails to be asked
            self._answers.update(self._channel.ask({key: request}))
        untold = {key: self._answers[key] for key in requests if key not in self._told}
        if untold:
            self._channel.request("tasks/update", {"taskId": task.id, "inputResponses": untold})
            self._told.update(untold)


def _passes(error: McpError) -> bool:
    """Whether a task may be asked after again, after this failure of a request: it lives on at the server."""
    if isinstance(error, HttpError):
        return error.status == _TOO_MANY or error.status >= _SERVER_ERROR
    return isinstance(error, (ConnectionLost, ConnectFailed, RequestTimeout))


def _because(task: TaskStatus) -> str:
    return "" if task.message is None else ": %.500s" % task.message


def _result_of(task: TaskStatus) -> Dict[str, Any]:
    result = task.raw.get("result")
    if not isinstance(result, dict):
        raise InvalidMessage("the task %.100r is completed and has no result" % task.id)
    if result.get("resultType", "complete") != "complete":
        raise InvalidMessage("the result of the task %.100r is no complete one" % task.id)
    return result


def _error_of(task: TaskStatus) -> RpcError:
    error = task.raw.get("error")
    error = error if isinstance(error, AbstractMapping) else {}
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, int):
        code = INTERNAL_ERROR
    if not isinstance(message, str):
        message = "the task %.100r failed%s" % (task.id, _because(task))
    return RpcError.of(code, message, error.get("data"))
