"""The deadlines of exchanges that no call's watchdog keeps."""

from __future__ import annotations

import threading

import pytest

from mcpsync.deadline import Deadline
from mcpsync.transport.http.clock import Clock
from mcpsync.transport.http.exchange import TIMED_OUT, Aborted, Exchange
from tests.transport.http.wired import PATIENCE


def test_a_thread_that_could_not_start_is_started_for_the_next_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock("mcpsync-test-clock")

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    first, second = Exchange(), Exchange()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        clock.watch(first, Deadline(0.05))
    clock.watch(second, Deadline(0.1))
    for exchange in (first, second):
        with pytest.raises(Aborted, match=TIMED_OUT):
            exchange.pause(PATIENCE)
    clock.stop(PATIENCE)
