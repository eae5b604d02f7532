"""Frames on their way to the server: whole or not at all, never longer than the deadline."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Dict, List, Optional

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, MessageTooLarge, Overloaded, ProcessExited
from mcpsync.transport.base import Frame
from mcpsync.transport.stdio_server import Graces
from tests.transport.harness import ECHO, PATIENCE, Call, Connected, connected, peer, python, until

DEAF = "import sys, time; print('{}', flush=True); time.sleep(100)"
"""A server that never reads."""
DEAF_UNTIL_SIGNAL = (
    "import os, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\nprint('{}', flush=True)\n"
    "signal.sigwait([signal.SIGUSR1])\n" + ECHO
)
"""A server that starts to read when it gets SIGUSR1."""
PIPE = 65_536
IMPATIENT = Graces(flush=0.05, eof=0.05, term=2)


def fill(connection: Connected, *, pages_left: int = 0) -> int:
    """Send frames of a page each until not one byte more, or so many pages, fit the pipe; returns how many."""
    connection.sink.next()  # it runs
    frame = b'{"fill":"' + b"x" * (4096 - 12) + b'"}'
    assert len(frame) + 1 == 4096
    count = PIPE // 4096 - pages_left
    for _ in range(count):
        connection.send(frame)
    return count


def report(connection: Connected) -> Dict[str, Any]:
    connection.send(b"?")
    found: Dict[str, Any] = json.loads(connection.sink.next())
    return found


def test_frames_of_32_threads_arrive_whole() -> None:
    with connected(peer("count_frames.py", "0.001")) as connection:

        def work(number: int) -> None:
            letter = bytes([97 + number % 26])
            for turn in range(40):
                size = (40, 1000, 4000, 4090, 5000, 9000)[(number + turn) % 6]
                connection.send(b"%d " % (number * 100 + turn) + letter * size)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        got = report(connection)
    assert got["torn"] == 0
    assert sorted(got["seen"]) == sorted(number * 100 + turn for number in range(32) for turn in range(40))
    for number in range(32):  # what one thread sent stays in order
        mine = [seen for seen in got["seen"] if seen // 100 == number]
        assert mine == sorted(mine)


def test_interrupts_tear_no_frame() -> None:
    """Ctrl-C at random moments of sending, small frames and big ones, to a reader that is slow."""

    def strike(number: int, frame: Optional[FrameType]) -> None:
        while frame is not None:
            if frame.f_code is Connected.send.__code__:
                raise KeyboardInterrupt
            frame = frame.f_back

    strikes = number = 0
    sent: List[int] = []
    before = signal.signal(signal.SIGALRM, strike)
    try:
        with connected(peer("count_frames.py", "0.0001"), backlog=1_000_000) as connection:
            signal.setitimer(signal.ITIMER_REAL, 0.003, 0.0007)
            while strikes < 100:
                number += 1
                try:
                    connection.send(b"%d " % number + b"z" * (200_000 if number % 50 == 0 else 3000))
                    sent.append(number)
                except KeyboardInterrupt:
                    strikes += 1
                if number % 8 == 0:
                    time.sleep(0.001)  # the reader of frames gets on meanwhile
            signal.setitimer(signal.ITIMER_REAL, 0)
            got = report(connection)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert got["torn"] == 0
    assert got["seen"] == sorted(set(got["seen"]))
    # What was interrupted may have been sent or not; what was not, has been.
    assert set(sent) <= set(got["seen"]) <= set(range(1, number + 1))


def test_a_server_that_does_not_read_holds_nobody() -> None:  # C13
    with connected(python(DEAF), graces=IMPATIENT) as connection:
        fill(connection)
        call = Call()
        start = time.monotonic()
        connection.send(b'{"id":1}', call, 1)
        connection.send(b"{" + b"x" * 1_000_000 + b"}", None, 1)
        assert time.monotonic() - start < 0.5
        assert connection.transport.abort(call, "timeout")
        assert not connection.transport.abort(call, "timeout")


def test_a_revived_pipe_gets_whole_frames() -> None:  # C13
    with connected(python(DEAF_UNTIL_SIGNAL)) as connection:
        count = fill(connection)
        dropped, kept = Call(1), Call(2)
        connection.send(b'{"id":1}', dropped)
        connection.send(b'{"id":2}', kept)
        connection.send(b'{"big":"' + b"y" * 300_000 + b'"}')
        assert connection.transport.abort(dropped, "timeout")
        assert connection.transport.pid is not None
        os.kill(connection.transport.pid, signal.SIGUSR1)
        got = [json.loads(connection.sink.next()) for _ in range(count + 2)]
        assert got[count:] == [{"id": 2}, {"big": "y" * 300_000}]
        assert not connection.transport.abort(kept, "timeout")
        outgoing = connection.transport._outgoing
        assert until(lambda: outgoing._direct)  # senders write themselves again
        connection.send(b'{"id":3}')
        assert connection.sink.next() == b'{"id":3}'


def test_a_frame_that_fits_in_part_is_not_begun_by_its_sender() -> None:
    with connected(python(DEAF_UNTIL_SIGNAL)) as connection:
        count = fill(connection, pages_left=1)
        longer = [b'{"n":%d,"x":"' % number + b"z" * 9000 + b'"}' for number in range(2)]
        for frame in longer:
            connection.send(frame)
        assert connection.transport.pid is not None
        os.kill(connection.transport.pid, signal.SIGUSR1)
        assert [connection.sink.next() for _ in range(count + 2)][count:] == longer


def test_aborting_the_only_waiting_frame_opens_the_direct_way() -> None:
    with connected(python(DEAF_UNTIL_SIGNAL)) as connection:
        count = fill(connection)
        call = Call()
        connection.send(b'{"id":1}', call)
        assert connection.transport.abort(call, "timeout")
        assert connection.transport.pid is not None
        os.kill(connection.transport.pid, signal.SIGUSR1)
        for _ in range(count):
            connection.sink.next()
        connection.send(b'{"id":2}')
        assert connection.sink.next() == b'{"id":2}'


def test_a_frame_that_has_begun_is_not_aborted() -> None:
    with connected(python(DEAF_UNTIL_SIGNAL)) as connection:
        connection.sink.next()
        call, behind = Call(1), Call(2)
        big = b'{"big":"' + b"y" * 300_000 + b'"}'
        connection.send(big, call)
        connection.send(b'{"id":2}', behind)
        outgoing = connection.transport._outgoing
        assert outgoing is not None
        assert until(lambda: outgoing._frames[0].written > 0)
        assert not connection.transport.abort(call, "timeout")
        assert connection.transport.abort(behind, "timeout")
        assert connection.transport.pid is not None
        os.kill(connection.transport.pid, signal.SIGUSR1)
        assert connection.sink.next() == big


def test_a_full_backlog_waits_until_the_deadline() -> None:
    with connected(python(DEAF), backlog=10_000, graces=IMPATIENT) as connection:
        fill(connection)
        connection.send(b"{" + b"x" * 6000 + b"}")
        start = time.monotonic()
        with pytest.raises(Overloaded, match="does not read"):
            connection.send(b"{" + b"x" * 6000 + b"}", None, 0.3)
        assert 0.3 <= time.monotonic() - start < 1
        start = time.monotonic()
        with pytest.raises(Overloaded):  # what must not wait has a deadline that has passed
            connection.send(b"{" + b"x" * 6000 + b"}", None, 0)
        assert time.monotonic() - start < 0.2
        with pytest.raises(MessageTooLarge, match="backlog limit") as caught:
            connection.send(b"x" * 10_000)
        assert (caught.value.limit, caught.value.server) == (10_000, "server")


def test_who_waits_for_room_goes_on_when_there_is_some() -> None:
    with connected(python(DEAF_UNTIL_SIGNAL), backlog=10_000) as connection:
        count = fill(connection)
        connection.send(b"{" + b"x" * 9000 + b"}")
        done = threading.Event()

        def wait() -> None:
            connection.send(b"{" + b"y" * 9000 + b"}")
            done.set()

        thread = threading.Thread(target=wait)
        thread.start()
        assert not done.wait(0.1)
        assert connection.transport.pid is not None
        os.kill(connection.transport.pid, signal.SIGUSR1)
        assert done.wait(10)
        thread.join()
        got = [connection.sink.next() for _ in range(count + 2)]
        assert got[-1] == b"{" + b"y" * 9000 + b"}"


@pytest.mark.parametrize("how", ["close", "kill"])
def test_who_waits_for_room_learns_of_the_end(how: str) -> None:
    with connected(python(DEAF), backlog=10_000, graces=IMPATIENT) as connection:
        fill(connection)
        connection.send(b"{" + b"x" * 9000 + b"}")
        caught: List[BaseException] = []

        def wait() -> None:
            try:
                connection.send(b"{" + b"y" * 9000 + b"}")
            except ConnectionLost as error:
                caught.append(error)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        if how == "close":
            connection.close()
        else:
            assert connection.transport.pid is not None
            os.kill(connection.transport.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(5)
        expected = ConnectionLost if how == "close" else ProcessExited
        assert [type(error) for error in caught] == [expected] * 3
        assert len({id(error) for error in caught}) == 3


def test_sending_to_a_dead_server_tells_its_exit_code() -> None:
    """The reader may not have heard of it yet when the pipe breaks."""
    with connected(python("import sys; sys.stdin.readline(); sys.exit('tired')")) as connection:
        with pytest.raises(ProcessExited, match="exited with code 1; stderr: tired") as caught:
            while True:
                connection.send(b"{}")
        assert caught.value.exit_code == 1


def test_a_server_that_closes_its_stdin_is_lost() -> None:
    code = "import os, time; os.close(0); print('{}', flush=True); time.sleep(100)"
    with connected(python(code), graces=Graces(silence=0.2, eof=0.05)) as connection:
        connection.sink.next()
        with pytest.raises(ConnectionLost, match="closed its standard input"):
            connection.send(b"{}")
        assert "closed its standard input, but it still runs" in str(connection.sink.loss())


def test_a_server_that_closes_its_stdin_while_frames_wait_is_lost() -> None:
    code = "import os, time; time.sleep(0.1); os.close(0); print('{}', flush=True); time.sleep(100)"
    with connected(python(code), graces=Graces(silence=0.2, eof=0.05)) as connection:
        connection.send(b"x" * 300_000)
        assert "closed its standard input" in str(connection.sink.loss())


def test_the_error_of_a_broken_pipe_comes_by_the_deadline() -> None:
    """No reader is there to find out more."""
    code = "import os, time; os.close(0); print('{}', flush=True); time.sleep(100)"
    with connected(python(code), graces=Graces(silence=5, eof=0.05)) as connection:
        connection.sink.next()
        start = time.monotonic()
        with pytest.raises(ConnectionLost, match="closed its standard input"):
            connection.send(b"{}", None, 0.2)
        assert time.monotonic() - start < 1


def test_use_after_close_fails_at_once() -> None:
    with connected(["/bin/cat"]) as connection:
        connection.close()
        with pytest.raises(ConnectionLost, match="closed"):
            connection.send(b"{}")
        with pytest.raises(ConnectionLost, match="closed"):
            connection.send(b"x" * 10_000)
        assert not connection.transport.abort(Call(), "late")


def test_frames_that_wait_are_still_written_by_a_close() -> None:
    with connected(python(ECHO), graces=Graces(flush=10)) as connection:
        connection.send(b"{}")
        connection.sink.next()  # the reader is there, without which nothing is written
        connection.send(b"{" + b"x" * 500_000 + b"}")
        connection.close()
        assert len(connection.sink.next()) == 500_002


def test_a_frame_sent_before_the_reader_runs_waits_for_it() -> None:
    from mcpsync.transport.stdio import StdioTransport
    from tests.transport.harness import Recorder

    transport, sink = StdioTransport(python(ECHO)), Recorder()
    transport.open(Deadline(PATIENCE))
    transport.send(Frame(b"{" + b"x" * 100_000 + b"}"), None, Deadline(1))
    reader = threading.Thread(target=transport.run, args=(sink,))
    reader.start()
    assert len(sink.next()) == 100_002
    transport.close(Deadline(PATIENCE))
    reader.join()


def test_a_signal_handler_never_waits_for_what_it_interrupted() -> None:
    """It may have struck while this very thread held the lock; then there will be no room before it returns."""
    with connected(python(DEAF), backlog=10_000, graces=IMPATIENT) as connection:
        fill(connection)
        connection.send(b"x" * 9000)
        outgoing = connection.transport._outgoing
        with outgoing._lock:
            start = time.monotonic()
            with pytest.raises(Overloaded):
                connection.send(b"x" * 9000)
            outgoing.flush(Deadline(PATIENCE))
            assert time.monotonic() - start < 1


def test_a_signal_handler_that_sends_does_not_deadlock() -> None:
    with connected(python(ECHO)) as connection:
        count = 0

        def handler(number: int, frame: object) -> None:
            nonlocal count
            count += 1
            connection.send(b'{"from":"handler"}')

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        sent = 0
        try:
            while count < 200:
                connection.send(b'{"from":"main"}')
                sent += 1
                connection.sink.next()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert len([connection.sink.next() for _ in range(count)]) == count
