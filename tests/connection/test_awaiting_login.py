"""Looking whether somebody has signed in goes on, whatever a look ends in."""

from __future__ import annotations

import queue
import threading
from typing import Iterator

import pytest

from mcpsync.connection import awaiting_login
from mcpsync.connection.awaiting_login import AwaitingLogin
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Watchdog

PATIENCE = 10.0


@pytest.fixture
def watchdog(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watchdog]:
    monkeypatch.setattr(awaiting_login, "_GAP", 0.01)
    made = Watchdog("mcpsync-test-watchdog", lambda key: None)
    made.start()
    yield made
    made.stop()
    made.join(PATIENCE)


def test_a_store_that_fails_is_asked_again(watchdog: Watchdog, caplog: pytest.LogCaptureFixture) -> None:
    answers = [OSError("the disk is away"), False, KeyError("SECRET"), True]
    resumed = threading.Event()

    def signed_in() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    workers = Workers("mcpsync-test-link", 1)
    login = AwaitingLogin(watchdog, workers, signed_in, resumed.set)
    login.begin()
    assert resumed.wait(PATIENCE)
    workers.stop()
    assert workers.drain(PATIENCE)
    assert "the disk is away" in caplog.text
    assert "KeyError" in caplog.text
    assert "SECRET" not in caplog.text, "what a store of the user's raises may hold what it was given"


class Short(Workers):
    """A pool of a system that has no thread left at first."""

    def __init__(self, refusals: int) -> None:
        super().__init__("mcpsync-test-link", 1)
        self._refusals = refusals
        self.refused: queue.SimpleQueue[None] = queue.SimpleQueue()

    def submit(self, task: object) -> bool:
        if self._refusals:
            self._refusals -= 1
            self.refused.put(None)
            return False
        return super().submit(task)  # type: ignore[arg-type]


def test_a_look_that_finds_no_thread_is_made_later(watchdog: Watchdog) -> None:
    resumed = threading.Event()
    workers = Short(2)
    AwaitingLogin(watchdog, workers, lambda: True, resumed.set).begin()
    assert resumed.wait(PATIENCE)
    assert workers.refused.qsize() == 2
    workers.stop()
    assert workers.drain(PATIENCE)
