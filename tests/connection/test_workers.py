"""Pools of threads: what ``flush`` waits for."""

from __future__ import annotations

import threading

from mcpsync.connection.threads import Workers

PATIENCE = 10.0


def test_flush_waits_for_every_thread_of_a_pool() -> None:
    workers = Workers("mcpsync-test", 4)
    gates = [threading.Event() for _ in range(3)]
    begun = threading.Semaphore(0)
    done = []

    def work(number: int) -> None:
        begun.release()
        gates[number].wait(PATIENCE)
        done.append(number)

    try:
        assert workers.flush(PATIENCE)
        for number in range(3):
            assert workers.submit(lambda number=number: work(number))  # type: ignore[misc]
        for _ in range(3):
            assert begun.acquire(timeout=PATIENCE)
        gates[0].set()
        gates[1].set()
        assert not workers.flush(0.05)
        threading.Timer(0.05, gates[2].set).start()
        assert workers.flush(PATIENCE)
        assert sorted(done) == [0, 1, 2]
        assert workers.flush(0)
    finally:
        for gate in gates:
            gate.set()
        workers.stop()
        assert workers.drain(PATIENCE)
