"""A fork waits for threads that are on their way out, and for no others."""

from __future__ import annotations

import os
import threading
import time
import warnings
from typing import List

import pytest

from mcpsync.passing_threads import FORK_SECONDS, forks_wait_for_this_thread

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def fork() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are other threads, which is the point
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_fork_waits_for_a_thread_that_leaves() -> None:
    listed, gone = threading.Event(), []  # type: ignore[var-annotated]

    def leaves() -> None:
        forks_wait_for_this_thread()
        listed.set()
        time.sleep(0.02)
        gone.append(True)

    thread = threading.Thread(target=leaves)
    thread.start()
    listed.wait()
    fork()
    assert gone and not thread.is_alive()


def test_one_that_stays_holds_a_fork_up_for_a_moment_only() -> None:
    listed, over = threading.Event(), threading.Event()

    def stays() -> None:
        forks_wait_for_this_thread()
        listed.set()
        over.wait()

    thread = threading.Thread(target=stays)
    thread.start()
    try:
        listed.wait()
        started = time.monotonic()
        fork()
        assert FORK_SECONDS <= time.monotonic() - started < FORK_SECONDS + 5
        assert thread.is_alive()
    finally:
        over.set()
        thread.join()


@pytest.mark.timed
def test_a_thread_does_not_wait_for_itself() -> None:
    took: List[float] = []

    def forks() -> None:
        forks_wait_for_this_thread()
        started = time.monotonic()
        fork()
        took.append(time.monotonic() - started)

    fork()  # whatever other tests left
    thread = threading.Thread(target=forks)
    thread.start()
    thread.join()
    assert took[0] < FORK_SECONDS
