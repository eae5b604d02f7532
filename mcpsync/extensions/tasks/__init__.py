"""Tasks: calls of tools that go on at the server for as long as they take.

::

    from mcpsync.extensions import tasks

    with mcpsync.connect(url, extensions=tasks.EXTENSION) as client:
        print(client.call_tool("research", {"topic": "tides"}).text)     # waits, as for any other tool

        handle = tasks.submit(client, "research", {"topic": "tides"})    # does not
        save(json.dumps(handle.reference()))

    with mcpsync.connect(url, extensions=tasks.EXTENSION) as client:     # later, in another process
        print(tasks.resume(client, json.loads(saved)).result(timeout=600).text)

The client hosts no tasks itself: it never declares that it would, and refuses such requests with -32601.

Specification: the extension ``io.modelcontextprotocol/tasks`` (SEP-2663); `basic/utilities/tasks` (2025-11-25,
experimental).
"""

from __future__ import annotations

from mcpsync.extensions.tasks.calls import follow
from mcpsync.extensions.tasks.following import TaskCancelled
from mcpsync.extensions.tasks.handle import TaskHandle, resume, submit
from mcpsync.extensions.tasks.state import TaskStatus
from mcpsync.types import Extension

__all__ = ["EXTENSION", "NAME", "TaskCancelled", "TaskHandle", "TaskStatus", "resume", "submit"]

NAME = "io.modelcontextprotocol/tasks"

EXTENSION = Extension(NAME, {}, {"task": follow})
"""For the option ``extensions`` of a client or host: tools may answer with a task, which is waited for."""
