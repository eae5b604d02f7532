"""The thread that owns time outlives what it calls."""

from __future__ import annotations

import logging
import queue
import sys
from typing import Any, Dict, Optional

import pytest

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
