"""The state of futures: no thread is held up for ever by what Ctrl-C left in the standard library's functions."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any, Callable, List

import pytest

from mcpsync.connection import future as futures
from mcpsync.connection.future import CallFuture
from mcpsync.errors import McpError


class Owner:
    def cancel(self) -> bool:
        return True

    def run_last(self, callback: Callable[[], None]) -> None:
        callback()

    def describe(self, error: McpError) -> McpError:
        return error


def on_another_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.parametrize("settle", [lambda each: each.settle("x", None), lambda each: each.cancel()])
def test_a_lock_that_an_interrupted_wait_left_taken_holds_no_reader(
    settle: Callable[[CallFuture[Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(futures, "_LEFT_SECONDS", 0.02)
    monkeypatch.setattr(futures, "_condition", futures._StateLock())
    calls: List[CallFuture[Any]] = [CallFuture(Owner()) for _ in range(3)]
    # as far as wait() comes when Ctrl-C strikes in the middle of its taking the locks
    calls[0]._condition.acquire()
    calls[1]._condition.acquire()
    for call in calls[:2]:
        on_another_thread(lambda call=call: settle(call))  # type: ignore[misc]
        assert call.done()
    on_another_thread(lambda: concurrent.futures.wait(calls, 0.001))
    settle(calls[2])
    assert concurrent.futures.wait(calls, 5).not_done == set()
    assert set(concurrent.futures.as_completed(calls, 5)) == set(calls)


def test_who_held_a_lock_that_was_replaced_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(futures, "_LEFT_SECONDS", 0.02)
    lock = futures._StateLock()
    monkeypatch.setattr(futures, "_condition", lock)
    call: CallFuture[Any] = CallFuture(Owner())
    with lock:
        on_another_thread(lambda: call.settle("x", None))
        assert call.result(0) == "x"
    lock.acquire()
    on_another_thread(lambda: call.add_done_callback(print))
    lock.release()
    on_another_thread(lambda: lock.acquire() or lock.release())  # type: ignore[func-returns-value]
