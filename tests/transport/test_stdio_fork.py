"""A forked child has the parent's connection in its memory, and must keep its hands off."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Dict

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost
from mcpsync.transport.base import Frame
from mcpsync.transport.stdio import StdioTransport
from tests.transport.harness import ECHO, Call, Recorder, connected, peer, python, running, until


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        return os.fork()


def target_of(descriptor: str) -> str:
    try:
        return os.readlink("/proc/self/fd/" + descriptor)
    except FileNotFoundError:  # the one that listed the folder
        return ""


def in_child(transport: StdioTransport, *, told: bool) -> int:
    """What the child of a fork does; each wrong turn has an exit code of its own."""
    pipes = [target_of(str(descriptor)) for descriptor in transport._descriptors]
    if told:
        transport.after_fork()
        transport.after_fork()
        left = [target_of(descriptor) for descriptor in os.listdir("/proc/self/fd")]
        if any(pipe in left for pipe in pipes):
            return 10
        try:
            transport.send(Frame(b'{"from":"child"}'), None, Deadline(1))
            return 11
        except ConnectionLost as error:
            if "parent" not in str(error):
                return 12
        if transport.abort(Call(), "timeout"):
            return 13
        transport.run(Recorder())
    transport.close(Deadline(1))
    transport.close(Deadline(1))
    return 0


def run_in_child(transport: StdioTransport, *, told: bool) -> int:
    pid = fork()
    if pid == 0:
        code = 99
        try:
            code = in_child(transport, told=told)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_touches_nothing_of_the_parents() -> None:  # A8
    with connected(peer("family.py", "wait", "plain")) as connection:
        people: Dict[str, int] = {}
        while len(people) < 2:
            people.update(json.loads(connection.sink.next()))
        for told in (True, False):
            assert run_in_child(connection.transport, told=told) == 0
            assert all(map(running, people.values()))
            connection.send(b"{}")
            assert connection.sink.next() == b"{}"


def test_the_parent_is_not_troubled_by_a_stray_call() -> None:
    with connected(python(ECHO)) as connection:
        connection.transport.after_fork()
        connection.send(b"{}")
        assert connection.sink.next() == b"{}"


def test_a_child_that_lives_on_does_not_keep_the_server_alive() -> None:  # A8
    """Its copy of our end of stdin would hold back the end of file."""
    with connected(python(ECHO)) as connection:
        ready, say_ready = os.pipe()
        stay, leave = os.pipe()
        pid = fork()
        if pid == 0:
            try:
                os.close(leave)
                connection.transport.after_fork()
                os.write(say_ready, b"x")
                os.read(stay, 1)
            finally:
                os._exit(0)
        assert os.read(ready, 1) == b"x"
        assert connection.close() < 1
        assert connection.transport.exit_code == 0
        os.close(leave)
        os.waitpid(pid, 0)
        for descriptor in (ready, say_ready, stay):
            os.close(descriptor)


def test_a_transport_that_was_never_opened_survives_a_fork() -> None:
    transport = StdioTransport([sys.executable])
    pid = fork()
    if pid == 0:
        try:
            transport.after_fork()
            transport.close(Deadline(1))
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert until(lambda: not running(pid))
