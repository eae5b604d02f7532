"""The thread that owns time outlives what it calls."""

from __future__ import annotations

import logging
import queue
import sys
import threading
from typing import Any, Dict, Iterator, Optional

import pytest

from mcpsync.connection import watchdog as module
from mcpsync.connection.watchdog import Watchdog

PATIENCE = 10.0


class Armed:
    table: Optional[Dict[Any, float]] = None


@pytest.mark.parametrize("act", [lambda: sys.exit(3), lambda: 1 / 0], ids=["sys.exit", "a bug"])
def test_an_alarm_that_fails_stops_no_clock(act: Any, caplog: pytest.LogCaptureFixture) -> None:
    expired: queue.SimpleQueue[Any] = queue.SimpleQueue()
    watchdog = Watchdog("mcpsync-test-watchdog", expired.put)
    watchdog.start()
    try:
        watchdog.later(0.0, act)
        watchdog.post(act)
        key = Armed()
        watchdog.arm(key, 0.05)
        assert expired.get(timeout=PATIENCE) is key
    finally:
        watchdog.stop()
        watchdog.join(PATIENCE)
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


class Sleeper:
    """A watchdog whose clocks are moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.awake = self.asleep = 0.0
        self.slept: queue.SimpleQueue[Any] = queue.SimpleQueue()
        real = module.monotonic
        monkeypatch.setattr(module, "monotonic", lambda: real() + self.awake)
        self.watchdog = Watchdog("mcpsync-test-watchdog", lambda key: None, self.slept.put)
        self.watchdog.elapsed = lambda: real() + self.awake + self.asleep

    def look(self) -> None:
        """Have it wake, and wait until it is about to sleep again."""
        for _ in range(2):  # what it notices at the first it has told by the second
            turned = threading.Event()
            self.watchdog.post(turned.set)
            assert turned.wait(PATIENCE)


@pytest.fixture
def sleeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleeper]:
    made = Sleeper(monkeypatch)
    made.watchdog.start()
    made.look()
    yield made
    made.watchdog.stop()
    made.watchdog.join(PATIENCE)


def test_a_sleep_of_the_machine_is_noticed_once_and_on_waking(sleeper: Sleeper) -> None:
    timer = sleeper.watchdog.later(3_600, lambda: sleeper.slept.put("timer"))
    sleeper.asleep += 8 * 3_600
    sleeper.look()
    sleeper.look()
    assert sleeper.slept.get(timeout=PATIENCE) == pytest.approx(8 * 3_600, abs=60)
    assert sleeper.slept.empty(), "the timer, which stood still, or the same sleep again"
    timer.cancel()


def test_a_process_that_was_stopped_is_told_before_its_timers_fire(sleeper: Sleeper) -> None:
    """So it is where no clock goes on in a sleep that another does not."""
    sleeper.watchdog.later(60, lambda: sleeper.slept.put("timer"))
    sleeper.look()
    sleeper.awake += 3_600
    sleeper.look()
    assert sleeper.slept.get(timeout=PATIENCE) == pytest.approx(3_540, abs=60)
    assert sleeper.slept.get(timeout=PATIENCE) == "timer"


def test_a_clock_that_is_set_right_is_no_sleep(sleeper: Sleeper) -> None:
    for seconds in (1.0, -3_600.0, 4.0):
        sleeper.asleep += seconds
        sleeper.look()
    assert sleeper.slept.empty()
