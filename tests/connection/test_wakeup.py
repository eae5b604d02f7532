"""How the thread that waits for a call is woken."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Callable

import pytest

from mcpsync.connection import wakeup as wakeup_module
from mcpsync.connection.wakeup import NOBODY, LockWakeup, PipeWakeup, Wakeup, Wakeups

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no poll()")
KINDS = [LockWakeup, pytest.param(PipeWakeup, marks=POSIX)]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def assert_waits_for_a_wake(wakeup: Wakeup) -> None:
    over = threading.Event()
    thread = threading.Thread(target=lambda: (wakeup.wait(), over.set()))
    thread.start()
    assert not over.wait(0.05)
    wakeup.wake()
    assert over.wait(5)
    thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_wake_ends_a_wait_whichever_is_first(kind: Callable[[], Wakeup]) -> None:
    wakeup = kind()
    wakeup.wake()
    wakeup.wait()
    assert_waits_for_a_wake(wakeup)


@pytest.mark.parametrize("kind", KINDS)
def test_wakes_that_nobody_waited_for_end_one_wait(kind: Callable[[], Wakeup]) -> None:
    wakeup = kind()
    for _ in range(3):
        wakeup.wake()
    wakeup.wait()
    assert_waits_for_a_wake(wakeup)


@POSIX
@pytest.mark.parametrize("kind", KINDS)
def test_the_main_thread_notices_a_signal_while_it_waits(kind: Callable[[], Wakeup]) -> None:
    class Struck(Exception):
        pass

    def strike(number: int, frame: object) -> None:
        raise Struck

    before = signal.signal(signal.SIGALRM, strike)
    try:
        # The signal goes to whichever thread the system picks; the wait is over all the same.
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        start = time.monotonic()
        with pytest.raises(Struck):
            kind().wait()
        assert time.monotonic() - start < 2
    finally:
        signal.signal(signal.SIGALRM, before)


@POSIX
def test_pipes_are_used_again_and_closed() -> None:
    before = descriptors()
    wakeups = Wakeups()
    first = wakeups.take()
    assert descriptors() == before + 2
    wakeups.free.append(first)
    assert wakeups.take() is first
    second = wakeups.take()
    wakeups.free.append(first)
    wakeups.free.append(second)
    close_unused = wakeups.close()
    assert descriptors() == before + 4  # held here still
    del first, second
    assert descriptors() == before + 4
    close_unused()
    assert descriptors() == before


@POSIX
def test_there_is_a_bound_to_the_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup_module, "_MOST_PIPES", 2)
    wakeups = Wakeups()
    kinds = [type(wakeups.take()) for _ in range(4)]
    assert kinds == [PipeWakeup, PipeWakeup, LockWakeup, LockWakeup]


@POSIX
def test_without_descriptors_a_lock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        wakeup = Wakeups().take()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert type(wakeup) is LockWakeup
    assert descriptors() == before


@POSIX
def test_pipes_leave_half_of_the_descriptors_to_others() -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (before * 2 + 40, limits[1]))
    try:
        wakeups = Wakeups()
        taken = [wakeups.take() for _ in range(60)]
        assert PipeWakeup in {type(each) for each in taken}
        assert descriptors() <= before + 24
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@POSIX
def test_what_comes_back_after_the_close_is_not_kept() -> None:
    before = descriptors()
    wakeups = Wakeups()
    late = wakeups.take()
    wakeups.close()
    wakeups.free.append(late)
    del late
    assert descriptors() == before


@POSIX
def test_a_forked_child_wakes_nobody_of_the_parent() -> None:
    wakeup = PipeWakeup()
    child = os.fork()
    if child == 0:
        wakeup.after_fork()
        wakeup.wake()
        wakeup.wait()  # its own
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert_waits_for_a_wake(wakeup)


def test_nobody_is_woken_when_a_call_is_over() -> None:
    NOBODY.wake()
    NOBODY.wait()
    NOBODY.after_fork()
