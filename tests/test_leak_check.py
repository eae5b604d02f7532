"""The leak check itself must notice what it is there for."""

from __future__ import annotations

import subprocess
import sys
import threading

from tests.conftest import child_processes, leaks, our_threads


def test_notices_a_thread_of_ours_until_it_ends() -> None:
    before, done = our_threads(), threading.Event()
    thread = threading.Thread(target=done.wait, name="mcpsync-peer-reader")
    thread.start()
    try:
        assert leaks(before, set(child_processes()), settle=0) == ["thread mcpsync-peer-reader"]
    finally:
        done.set()
        thread.join()
    assert leaks(before, set(child_processes()), settle=0) == []


def test_lets_foreign_threads_be() -> None:
    before, done = our_threads(), threading.Event()
    thread = threading.Thread(target=done.wait, name="somebody-else")
    thread.start()
    try:
        assert leaks(before, set(child_processes()), settle=0) == []
    finally:
        done.set()
        thread.join()


def test_notices_a_child_and_a_zombie() -> None:
    before = set(child_processes())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    try:
        (alive,) = leaks(our_threads(), before, settle=0)
        assert alive.startswith("process %d: " % child.pid) and "input()" in alive
        child.stdin.close()
        child.stdout.read()  # to its end: the child has closed it, so it is ending
        child.stdout.close()
        while child_processes()[key_of(child.pid)] != "zombie":
            pass
        assert leaks(our_threads(), before, settle=0) == ["process %d: zombie" % child.pid]
    finally:
        child.kill()
        child.wait()
    assert leaks(our_threads(), before, settle=0) == []


def key_of(pid: int) -> tuple[int, str]:
    return next(key for key in child_processes() if key[0] == pid)
