"""The connection for systems whose pipes cannot be polled, here over the pipes of this one.

How Windows starts and ends a process is all that is left out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Iterator, Optional, Sequence

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, MessageTooLarge, Overloaded, ProcessExited
from mcpsync.transport.base import Frame
from mcpsync.transport.stdio_server import Graces, Prepared
from mcpsync.transport.stdio_threaded import EndableProcess, ThreadedStdio
from tests.transport.harness import ECHO, PATIENCE, Call, Connected, descriptors, peer, python, running, until

DEAF = "import sys, time; print('{}', flush=True); time.sleep(100)"


class GroupProcess:
    """A process group stands in for the job object."""

    def __init__(self, prepared: Prepared, stdin: int, stdout: int, stderr: int) -> None:
        self.popen = subprocess.Popen(
            prepared.launch.arguments,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=prepared.environ,
            cwd=prepared.cwd,
            start_new_session=True,
        )
        self.pid = self.popen.pid

    @property
    def exit_code(self) -> Optional[int]:
        return self.popen.returncode

    def wait(self, deadline: Deadline) -> bool:
        try:
            self.popen.wait(deadline.remaining())
        except subprocess.TimeoutExpired:
            return False
        return True

    def end_all(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def release(self) -> None:
        pass


class GroupStdio(ThreadedStdio):
    def _start_process(self, prepared: Prepared, stdin: int, stdout: int, stderr: int) -> EndableProcess:
        return GroupProcess(prepared, stdin, stdout, stderr)


@contextmanager
def connected(command: Sequence[str], **options: Any) -> Iterator[Connected]:
    before = descriptors()
    connection = Connected(GroupStdio(command, **options))
    try:
        yield connection
    finally:
        connection.transport.close(Deadline(PATIENCE))
        connection.reader.join(PATIENCE)
        assert not connection.reader.is_alive()
        assert until(lambda: descriptors() == before)


def test_frames_travel_both_ways_and_a_close_ends_it() -> None:
    with connected(python(ECHO)) as connection:
        for data in (b"{}", b"{" + b"x" * 1_000_000 + b"}"):
            connection.send(data)
            assert connection.sink.next() == data
        assert connection.close() < 1
        assert connection.transport.exit_code == 0
        assert connection.sink.losses.empty()
        with pytest.raises(ConnectionLost, match="closed"):
            connection.send(b"{}")
        assert connection.close() < 0.1


def test_frames_of_many_threads_arrive_whole() -> None:
    with connected(peer("count_frames.py")) as connection:
        threads = [
            threading.Thread(target=lambda n=number: [connection.send(b"%d " % n + b"z" * 9000) for _ in range(20)])
            for number in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        connection.send(b"?")
        got = json.loads(connection.sink.next())
    assert got["torn"] == 0
    assert sorted(got["seen"]) == sorted(list(range(16)) * 20)


def test_a_server_that_does_not_read_holds_nobody() -> None:  # C13
    with connected(python(DEAF), backlog=200_000, graces=Graces(flush=0.05, eof=0.1)) as connection:
        connection.sink.next()
        first, second = Call(1), Call(2)
        connection.send(b"x" * 100_000, first)
        connection.send(b"x" * 90_000, second)
        with pytest.raises(Overloaded):
            connection.send(b"x" * 90_000, None, 0.1)
        with pytest.raises(MessageTooLarge):
            connection.send(b"x" * 300_000)
        assert not connection.transport.abort(first, "it has begun")
        assert connection.transport.abort(second, "timeout")
        assert connection.close() < 2


def test_the_end_of_the_server_tells_code_and_stderr() -> None:  # B2
    with connected(python("import sys; input(); sys.exit('no database')")) as connection:
        connection.send(b"{}")
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert (loss.exit_code, loss.stderr_tail) == (1, "no database")
        with pytest.raises(ProcessExited):
            connection.send(b"{}")


def test_a_grandchild_does_not_keep_the_connection() -> None:  # B13
    with connected(peer("family.py", "die", "group")) as connection:
        people = {}
        while len(people) < 2:
            people.update(json.loads(connection.sink.next()))
        start = time.monotonic()
        connection.send(b"{}")
        loss = connection.sink.loss()
        assert time.monotonic() - start < 1
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == 3
        assert until(lambda: not running(people["grandchild"]))


def test_a_stubborn_server_is_ended() -> None:  # B7
    code = "import signal, time; print('{}', flush=True)\nwhile True: time.sleep(9)"
    with connected(python(code), graces=Graces(eof=0.2)) as connection:
        connection.sink.next()
        assert 0.2 <= connection.close() < 1.5
        assert connection.transport.exit_code == -signal.SIGKILL


def test_a_line_beyond_the_cap_ends_the_connection() -> None:  # C3
    with connected(python("print('{' + 'x' * 100000); input()"), max_message=1000) as connection:
        assert isinstance(connection.sink.loss(), MessageTooLarge)


def test_closing_stdout_or_stdin_while_running_is_a_loss() -> None:
    code = "import os, time; os.close(%d); print('{}', file=open(2, 'w'), flush=True); time.sleep(99)"
    with connected(python(code % 1), graces=Graces(silence=0.2, eof=0.1)) as connection:
        assert "but it still runs" in str(connection.sink.loss())
    with connected(python(code % 0), graces=Graces(silence=0.2, eof=0.1)) as connection:
        assert until(lambda: connection.transport.stderr_tail == "{}")
        with pytest.raises(ConnectionLost, match="standard input"):
            while True:
                connection.send(b"{}")


def test_a_start_that_fails_leaves_nothing() -> None:
    class Failing(GroupStdio):
        def _start_process(self, prepared: Prepared, stdin: int, stdout: int, stderr: int) -> EndableProcess:
            raise OSError(11, "no room")

    before = descriptors()
    with pytest.raises(ConnectFailed, match="no room"):
        Failing(["/bin/cat"]).open(Deadline(5))
    assert descriptors() == before


def test_no_thread_for_the_writer_is_a_clear_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    before = descriptors()
    with pytest.raises(ConnectFailed, match="can't start new thread"):
        GroupStdio(["/bin/cat"]).open(Deadline(5))
    assert descriptors() == before


def test_a_close_without_a_reader_gives_everything_back() -> None:
    before = descriptors()
    transport = GroupStdio(["/bin/cat"])
    transport.open(Deadline(5))
    transport.send(Frame(b"{}"), None, Deadline(1))
    transport.close(Deadline(5))
    assert until(lambda: descriptors() == before)
    assert transport.exit_code == 0
