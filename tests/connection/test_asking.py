"""The waits between the requests of one call."""

from __future__ import annotations

import threading
from typing import Callable

from mcpsync.connection.asking import Asking
from mcpsync.connection.call import Call, Wanted
from mcpsync.connection.clock import Clock
from mcpsync.connection.dispatch import Dispatch
from mcpsync.connection.questions import Questions
from mcpsync.connection.visits import Visits
from mcpsync.connection.watchdog import Timer, Watchdog
from mcpsync.deadline import Timeouts

PATIENCE = 10.0


class Prompt(Watchdog):
    """Its alarms are due at once: as where the thread that sets one is held up right after that."""

    def later(self, seconds: float, action: Callable[[], object]) -> Timer:
        action()
        return Timer(0.0, action)


def test_a_pause_that_is_over_as_soon_as_it_begins() -> None:
    watchdog = Prompt("mcpsync-test-watchdog", lambda key: None)
    questions = Questions({}, Dispatch("pool", "mcpsync-test"), watchdog)
    asking = Asking(questions, Clock(watchdog), Visits(), watchdog)
    call = Call("tools/list", Wanted(Timeouts(call=None)))
    paused = threading.Thread(target=asking.pause, args=(call, 0.0), daemon=True)
    paused.start()
    paused.join(PATIENCE / 5)
    assert not paused.is_alive()
