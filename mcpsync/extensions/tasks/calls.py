"""Calls of tools that become tasks and are waited for like any other.

Specification: the extension ``io.modelcontextprotocol/tasks`` (SEP-2663), "Polymorphic Results".
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping

from mcpsync.connection.open_call import OpenCall
from mcpsync.errors import ClientClosed, InvalidMessage, RpcError, TransportError
from mcpsync.extensions.tasks.following import Follower, TaskCancelled
from mcpsync.extensions.tasks.state import created

__all__ = ["follow", "handed_over"]


class _HandedOver(threading.local):
    """Whether this thread wants the tasks of its calls, in place of their results."""

    wanted = False


_here = _HandedOver()


@contextmanager
def handed_over() -> Iterator[None]:
    """Within it, calls of this thread that become tasks give the task."""
    _here.wanted = True
    try:
        yield
    finally:
        _here.wanted = False


def follow(result: Dict[str, Any], call: OpenCall) -> Mapping[str, Any]:
    """What the extension makes of a result of the type ``task``: the result of the call.

    :raises InvalidMessage: no such result is allowed for the method
    """
    if call.method.startswith("tasks/"):
        return result  # some servers say so of the answer that tells of a task, as some examples of SEP-2663 do
    if call.method != "tools/call":
        raise InvalidMessage("%s cannot become a task" % call.method)
    if _here.wanted:
        return result
    task = created(result)
    asking = _Questions(call)
    try:
        return Follower(asking, task.id, task).run()
    except (ClientClosed, RpcError, TaskCancelled, TransportError):
        # the task is over, unknown there, or out of reach
        if asking.unanswered:
            call.tell("tasks/cancel", {"taskId": task.id})
        raise
    except BaseException:  # too late, cancelled, Ctrl-C: nobody wants it any more
        call.tell("tasks/cancel", {"taskId": task.id})
        raise


class _Questions:
    """An open call as a channel that knows whether a question of the task has found no answer.

    :ivar unanswered: so it is
    """

    def __init__(self, call: OpenCall) -> None:
        self.request = call.request
        self.wait = call.wait
        self._ask = call.ask
        self.unanswered = False

    def ask(self, requests: Mapping[str, Any]) -> Dict[str, Any]:
        """See :meth:`OpenCall.ask`."""
        try:
            return self._ask(requests)
        except RpcError:
            self.unanswered = True
            raise
