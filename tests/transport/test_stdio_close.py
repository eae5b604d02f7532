"""Ending a server and all it started, in time, from any thread."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Dict, List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import McpError, ProcessExited
from mcpsync.transport.stdio import StdioTransport
from mcpsync.transport.stdio_server import Graces
from tests.transport.harness import (
    ECHO,
    PATIENCE,
    Connected,
    Recorder,
    connected,
    descriptors,
    peer,
    python,
    running,
    until,
)

STUBBORN = (
    "import signal, sys, time\nfor number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):\n"
    "    signal.signal(number, lambda n, f: (sys.stderr.write('got %d\\n' % n), sys.stderr.flush()))\n"
    "print('{}', flush=True)\nwhile True: time.sleep(100)\n"
)


def family(connection: Connected) -> Dict[str, int]:
    found: Dict[str, int] = {}
    while len(found) < 2:
        found.update(json.loads(connection.sink.next()))
    return found


def no_zombie(pid: int) -> bool:
    return not Path("/proc/%d" % pid).exists()


@pytest.mark.timed
def test_a_server_that_heeds_the_end_of_its_input_is_closed_at_once() -> None:
    times = []
    for _ in range(20):
        with connected(["/bin/cat"]) as connection:
            connection.send(b"{}")
            connection.sink.next()
            times.append(connection.close())
            assert connection.transport.exit_code == 0
            assert connection.transport.pid is not None
            assert no_zombie(connection.transport.pid)
    assert sorted(times)[10] < 0.005


def test_eof_then_term_then_kill() -> None:  # B7
    with connected(python(STUBBORN), graces=Graces(eof=0.3, term=0.3)) as connection:
        connection.sink.next()
        took = connection.close()
        assert 0.6 <= took < 1.5
        assert connection.transport.exit_code == -signal.SIGKILL
        assert connection.transport.stderr_tail == "got 15"
        assert connection.transport.pid is not None
        assert no_zombie(connection.transport.pid)


def test_the_graces_are_shares_of_a_short_deadline() -> None:
    with connected(python(STUBBORN)) as connection:
        connection.sink.next()
        assert connection.close(0.5) < 1
        assert connection.transport.exit_code == -signal.SIGKILL


def test_no_time_at_all_kills_at_once() -> None:
    with connected(python(STUBBORN)) as connection:
        connection.sink.next()
        assert connection.close(0) < 0.5
        assert connection.transport.exit_code == -signal.SIGKILL
        assert connection.transport.pid is not None
        assert no_zombie(connection.transport.pid)


def test_a_server_that_is_slow_to_die_is_reaped_when_it_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    kill = os.killpg
    held_back: List[int] = []

    def kill_late(group: int, number: int) -> None:  # as a machine does that is very busy
        if number == 0:
            kill(group, 0)
        else:
            held_back.append(number)

    monkeypatch.setattr(os, "killpg", kill_late)
    with connected(python(STUBBORN)) as connection:
        connection.sink.next()
        connection.close(0)
        pid = connection.transport.pid
        assert pid is not None and not no_zombie(pid)
        assert signal.SIGKILL in held_back
        kill(pid, signal.SIGKILL)
        until(lambda: no_zombie(pid))
        until(lambda: not any(thread.name.endswith("-waiter") for thread in threading.enumerate()))


def test_term_ends_what_ignores_eof() -> None:
    with connected(
        python("import time; print('{}', flush=True); time.sleep(99)"), graces=Graces(eof=0.05)
    ) as connection:
        connection.sink.next()
        assert connection.close() < 1
        assert connection.transport.exit_code == -signal.SIGTERM


def test_a_stuck_reader_does_not_hold_a_close() -> None:  # B5
    stuck, go_on = threading.Event(), threading.Event()

    class Stuck(Recorder):
        def frame(self, data: bytes, stream: object) -> None:
            stuck.set()
            go_on.wait(PATIENCE)

    before = descriptors()
    connection = Connected(StdioTransport(python(STUBBORN)), Stuck())
    assert stuck.wait(PATIENCE)
    assert connection.close(1) < 1.5
    assert connection.transport.pid is not None
    assert no_zombie(connection.transport.pid)
    go_on.set()
    connection.reader.join(PATIENCE)
    assert not connection.reader.is_alive()
    assert descriptors() == before


@pytest.mark.parametrize("kind", ["group", "session", "plain"])
def test_a_grandchild_goes_with_its_wrapper(kind: str) -> None:  # B8
    with connected(peer("family.py", "wait", kind), graces=Graces(linger=0.1, term=0.2)) as connection:
        people = family(connection)
        assert running(people["grandchild"])
        assert connection.close() < 2
        assert not running(people["grandchild"])
        assert no_zombie(people["wrapper"])


@pytest.mark.parametrize("kind", ["group", "session", "plain"])
def test_a_grandchild_does_not_keep_a_dead_wrappers_connection(kind: str) -> None:  # B8, B13
    with connected(peer("family.py", "die", kind), graces=Graces(linger=0.1, term=0.2)) as connection:
        people = family(connection)
        start = time.monotonic()
        connection.send(b"{}")
        loss = connection.sink.loss()
        assert time.monotonic() - start < 1
        assert isinstance(loss, ProcessExited)
        assert (loss.exit_code, loss.stderr_tail) == (3, "wrapper gives up")
        assert running(people["grandchild"])
        connection.reader.join(PATIENCE)
        assert connection.close() < 2
        assert not running(people["grandchild"])


def test_a_shell_wrapper_that_waits_ends_with_its_server() -> None:  # B8
    with connected(["/bin/sh", "-c", "/bin/cat; exit 4"]) as connection:
        connection.send(b"{}")
        connection.sink.next()
        assert connection.close() < 1
        assert connection.transport.exit_code == 4


def test_a_daemon_in_the_group_that_left_before_is_found() -> None:
    """Its parent is gone already, so only the group, which outlives its leader, tells of it."""
    command = ["/bin/sh", "-c", '(sleep 77 & echo "{\\"sleeper\\": $!}"); exec cat']
    with connected(command) as connection:
        sleeper = json.loads(connection.sink.next())["sleeper"]
        assert running(sleeper)
        connection.close()
        assert not running(sleeper)


def test_a_server_killed_from_outside_leaves_nothing() -> None:
    with connected(peer("family.py", "wait", "session"), graces=Graces(linger=0.1, term=0.2)) as connection:
        people = family(connection)
        os.kill(people["wrapper"], signal.SIGKILL)
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == -9
        connection.close()
        assert not running(people["grandchild"])


def test_a_server_that_must_speak_before_it_ends_is_listened_to() -> None:
    """More than a pipe holds, written after the end of its input; with the reader, and without one."""
    code = "import sys; sys.stdin.read(); print('{' + 'x' * 500000 + '}'); print('e' * 500000, file=sys.stderr)"
    with connected(python(code)) as connection:
        assert connection.close() < 2
        assert connection.transport.exit_code == 0
        assert len(connection.sink.next()) == 500_002
    transport = StdioTransport(python(code))
    transport.open(Deadline(PATIENCE))
    transport.close(Deadline(PATIENCE))
    assert transport.exit_code == 0


def test_a_second_close_waits_and_a_third_returns() -> None:
    with connected(python(STUBBORN), graces=Graces(eof=0.2, term=0.2)) as connection:
        connection.sink.next()
        times: List[float] = []
        threads = [threading.Thread(target=lambda: times.append(connection.close())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(took >= 0.35 for took in times)
        assert connection.transport.pid is not None
        assert no_zombie(connection.transport.pid)
        assert connection.close() < 0.05


def test_a_second_close_has_a_deadline_of_its_own() -> None:
    with connected(python(STUBBORN), graces=Graces(eof=0.4, term=0.2)) as connection:
        connection.sink.next()
        first = threading.Thread(target=connection.close)
        first.start()
        assert until(lambda: connection.transport._closing)
        assert connection.close(0.1) < 0.3
        first.join()


def test_the_reader_may_close() -> None:
    class Closing(Recorder):
        def lost(self, cause: McpError) -> None:
            transport.close(Deadline(PATIENCE))
            super().lost(cause)

    before = descriptors()
    transport = StdioTransport(python("import sys; input(); sys.exit(1)"))
    connection = Connected(transport, Closing())
    connection.send(b"{}")
    assert isinstance(connection.sink.loss(), ProcessExited)
    connection.reader.join(PATIENCE)
    assert descriptors() == before


def test_a_close_before_run_lets_run_return() -> None:
    before = descriptors()
    transport = StdioTransport(["/bin/cat"])
    transport.open(Deadline(PATIENCE))
    transport.close(Deadline(PATIENCE))
    transport.run(Recorder())
    assert descriptors() == before


def test_fifty_connections_leave_nothing() -> None:  # B9
    before, threads = descriptors(), threading.active_count()
    for number in range(50):
        command = ["/bin/cat"] if number % 2 else ["/bin/sh", "-c", "exit 3"]
        with connected(command) as connection:
            if number % 2:
                connection.send(b"{}")
                connection.sink.next()
            else:
                connection.sink.loss()
        assert connection.transport.pid is not None
        assert no_zombie(connection.transport.pid)
    assert (descriptors(), threading.active_count()) == (before, threads)


def test_ctrl_c_in_a_close_kills_and_reaps() -> None:
    with connected(python(STUBBORN)) as connection:
        connection.sink.next()

        def strike(number: int, frame: object) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, strike)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(KeyboardInterrupt):
                connection.close()
        finally:
            signal.signal(signal.SIGALRM, before)
        assert connection.transport.exit_code == -signal.SIGKILL
        assert connection.transport.pid is not None
        assert no_zombie(connection.transport.pid)


def test_closes_together_share_their_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpsync.transport import process_table

    looks = 0
    real = process_table.look

    def counted(*, tokens: bool) -> List[process_table.Entry]:
        nonlocal looks
        looks += 1
        time.sleep(0.05)  # long enough that the others ask meanwhile
        return real(tokens=tokens)

    monkeypatch.setattr(process_table, "look", counted)
    graces = Graces(linger=0.05, term=0.1)
    connections = [Connected(StdioTransport(peer("family.py", "wait", "group"), graces=graces)) for _ in range(6)]
    people = [family(connection) for connection in connections]
    threads = [threading.Thread(target=connection.close) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.reader.join()
    assert not any(running(pid) for each in people for pid in each.values())
    assert 1 <= looks <= 8  # each close looks twice; alone they would make twelve


def test_without_pidfd_a_small_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    before = descriptors()
    with connected(peer("family.py", "wait", "session"), graces=Graces(linger=0.1, term=0.2)) as connection:
        people = family(connection)
        assert any(thread.name == "mcpsync-server-waiter" for thread in threading.enumerate())
        connection.close()
        assert not running(people["grandchild"])
    with connected(python("import sys; sys.exit(6)")) as connection:
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == 6
    assert until(lambda: descriptors() == before)


def test_where_only_reaping_tells_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS with an older Python has neither pidfd nor waitid."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.delattr(os, "waitid")
    with connected(python("import sys; sys.exit(6)")) as connection:
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == 6
    with connected(peer("family.py", "wait", "group"), graces=Graces(eof=0.3, linger=0.1, term=0.2)) as connection:
        people = family(connection)
        connection.close()
        assert not running(people["grandchild"])
        assert connection.transport.exit_code == 0
    with connected(python(STUBBORN), graces=Graces(eof=0.1, term=0.1)) as connection:
        connection.sink.next()
        connection.close()
        assert connection.transport.exit_code == -signal.SIGKILL


def test_an_exit_code_that_someone_else_took_is_said_to_be_unknown() -> None:
    with connected(python("input()")) as connection:
        assert connection.transport.pid is not None
        waiter = threading.Thread(target=os.waitpid, args=(-1, 0))
        waiter.start()
        connection.send(b"{}")
        waiter.join()
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code in (0, None)  # None, unless the reader was quicker
        connection.close()


def test_ignored_child_signals_do_not_matter() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with connected(python("import sys; input(); sys.exit(3)")) as connection:
            connection.send(b"{}")
            loss = connection.sink.loss()
            assert isinstance(loss, ProcessExited)
            assert loss.exit_code is None
        with connected(python(ECHO)) as connection:
            connection.send(b"{}")
            connection.sink.next()
            assert connection.close() < 2
    finally:
        signal.signal(signal.SIGCHLD, before)
