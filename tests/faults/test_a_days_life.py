"""B17: a day's life in fast motion: calls through disconnects, renewals, idle closings and sleeps of the machine.

Each call has a number, which its tool writes down and gives back. A call that failed is made again with the same number
unless it may have been executed: so in the end the server's own list tells whether anything was lost or done twice.
"""

from __future__ import annotations

import gc
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from array import array
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List, NamedTuple, Union

import pytest

import mcpsync
from mcpsync import Backoff, Client, McpError, Timeouts
from tests.conftest import child_processes
from tests.faults.watch import open_descriptors
from tests.peers.scripted import peer

CALLERS = 4
HOUR = 3_600.0
SOON = Backoff((0.02, 0.05, 0.1, 0.5, 2.0))
TIMEOUTS = Timeouts(call=30, keepalive=60, idle_disconnect=HOUR, max_lifetime=24 * HOUR)
DONE, UNSURE = 1, 2
WARM = 0.4  # of the day: until then pools, caches and arenas fill
MOST_GROWTH = 50 * 1024  # for each 1,000 calls
MOST_LEFT = 150 * 1024  # after a morning, when a pool may have one thread more; a link that was never let go has 20 KB


class Server(NamedTuple):
    """What a day is lived with.

    :ivar target: what to connect to
    :ivar disconnect: cuts it off, once in this way and once in that
    :ivar executed: the numbers of the calls that it executed, in order
    """

    target: Union[str, List[str]]
    disconnect: Callable[[int], object]
    executed: Callable[[], List[int]]


def count(server: Any, request: Any, number: int) -> str:
    """Writes the number down, and gives it back."""
    import os

    with open(os.path.join(os.path.dirname(server._bell), "counted"), "a") as out:
        out.write("<%d>\n" % number)
    return "counted %d" % number


@contextmanager
def over_stdio(folder: Path) -> Iterator[Server]:
    """A process that is killed now and then."""
    scripted = peer(folder, count, lifetime=3_600)
    home = Path(scripted.command[-1])

    def kill(turn: int) -> None:
        (pid,) = [key[0] for key, command in child_processes().items() if str(home) in command]
        os.kill(pid, signal.SIGKILL)

    yield Server(scripted.command, kill, lambda: _numbers(home / "counted"))
    assert [command for command in child_processes().values() if str(home) in command] == []


@contextmanager
def over_http(folder: Path, era: str) -> Iterator[Server]:
    """A server that closes its connections, and forgets its sessions every second time."""
    counted = folder / "counted"
    program = Path(__file__).resolve().parent.parent / "peers" / "counting_http.py"
    with subprocess.Popen(
        [sys.executable, str(program), era, str(counted)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def cut(turn: int) -> None:
            stdin.write("forget\n" if turn % 2 else "drop\n")
            stdin.flush()
            assert stdout.readline() == "done\n"

        yield Server(stdout.readline().strip(), cut, lambda: _numbers(counted))
        stdin.write("quit\n")
        stdin.flush()


def _numbers(path: Path) -> List[int]:
    # a line that a killed process left unfinished is of a call that may or may not have been executed
    return [int(number) for number in re.findall(r"<(\d+)>", path.read_text())]


class Day:
    """What happens in it.

    :param calls: how many
    """

    def __init__(self, client: Client, server: Server, calls: int) -> None:
        self._client = client
        self._server = server
        self._outcomes = array("b", bytes(calls))
        self._numbers = iter(range(calls))
        self._lock = threading.Lock()
        self._asleep = 0.0
        watchdog = client._connection.watchdog
        real = watchdog.elapsed
        watchdog.elapsed = lambda: real() + self._asleep
        self._disconnects = 0
        self.failed = 0

    def live(self, disconnects: int, renewals: int, idle: int, sleeps: int) -> None:
        """All of it, in an order that is the same each time."""
        events = ["disconnect"] * disconnects + ["renewal"] * renewals + ["idle"] * idle + ["sleep"] * sleeps
        random.Random(17).shuffle(events)
        warm = int(len(events) * WARM)
        share, rest = divmod(len(self._outcomes), len(events))
        for turn, event in enumerate(events):
            if turn == warm:
                before, calls_before = self._measured(), turn * share + rest
            self._calls(share + (rest if turn == 0 else 0), event)
        after = self._measured()
        self.thousands = (len(self._outcomes) - calls_before) / 1_000
        self.traced, self.resident = ((late - early) / self.thousands for early, late in zip(before[:2], after[:2]))
        self.resources = before[2:], after[2:]

    def _measured(self) -> List[int]:
        self._settled()
        for _ in range(2):
            gc.collect()
        traced = tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else 0
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        return [traced, resident, open_descriptors(), threading.active_count()]

    def _calls(self, number: int, event: str) -> None:
        """So many calls from several threads, in the middle of which it happens, or after them."""
        own = [next(self._numbers) for _ in range(number)]
        middle = threading.Event()
        threads = [threading.Thread(target=self._call_all, args=(own[at::CALLERS], middle)) for at in range(CALLERS)]
        for thread in threads:
            thread.start()
        if number:
            assert middle.wait(60)
        if event == "disconnect":
            self._server.disconnect(self._disconnects)
            self._disconnects += 1
        elif event == "sleep":
            self._sleep(HOUR / 2)  # too short for anything to get too old
        for thread in threads:
            thread.join()
        if event == "idle":
            self._closed_by(HOUR + 1)
        elif event == "renewal":
            self._closed_by(24 * HOUR + 1)

    def _sleep(self, seconds: float) -> None:
        self._asleep += seconds
        self._client._connection.watchdog.post(lambda: None)

    def _closed_by(self, seconds: float) -> None:
        """The machine sleeps, and what stood before is too old after it."""
        self._settled()
        self._client.ping()
        until = time.monotonic() + 30
        self._sleep(seconds)
        while self._client.state != "dormant":
            assert time.monotonic() < until, self._client.state
            time.sleep(0.001)

    def _settled(self) -> None:
        until = time.monotonic() + 30
        while self._client.state in ("waiting", "connecting"):
            assert time.monotonic() < until, self._client.last_error
            time.sleep(0.001)

    def _call_all(self, numbers: List[int], middle: threading.Event) -> None:
        for at, number in enumerate(numbers):
            if at == len(numbers) // 2:
                middle.set()
            while not self._outcomes[number]:
                try:
                    result = self._client.call_tool("count", {"number": number}, timeout=30)
                except McpError as error:
                    with self._lock:
                        self.failed += 1
                    if getattr(error, "maybe_executed", False):
                        self._outcomes[number] = UNSURE
                    else:
                        self._settled()
                else:
                    assert result.text == "counted %d" % number
                    self._outcomes[number] = DONE

    def settle_accounts(self) -> int:
        """Compare with the server's own list; gives how many calls ended unsure."""
        times = [0] * len(self._outcomes)
        for number in self._server.executed():
            times[number] += 1
        for number, outcome in enumerate(self._outcomes):
            assert outcome in (DONE, UNSURE), "call %d is lost" % number
            assert times[number] == 1 or (outcome == UNSURE and times[number] == 0), (number, outcome, times[number])
        return list(self._outcomes).count(UNSURE)


def live(folder: Path, kind: str, calls: int, disconnects: int, renewals: int, idle: int, sleeps: int) -> Day:
    with over_stdio(folder) if kind == "stdio" else over_http(folder, kind) as server:
        era = "legacy" if kind == "legacy" else "auto"
        with mcpsync.connect(server.target, protocol=era, timeouts=TIMEOUTS, backoff=SOON) as client:
            day = Day(client, server, calls)
            began = time.monotonic()
            day.live(disconnects, renewals, idle, sleeps)
            unsure = day.settle_accounts()
            (files, threads), (files_after, threads_after) = day.resources
            print(
                "%s: %d calls in %.1f s over %d sessions: %d errors, %d of them unsure; growth per 1,000 calls: "
                "%.1f KB traced, %.1f KB resident; descriptors and threads %r -> %r"
                % (
                    *(kind, calls, time.monotonic() - began, client.sessions, day.failed, unsure),
                    *(day.traced / 1024, day.resident / 1024, *day.resources),
                )
            )
    lost = 0 if kind == "modern" else disconnects if kind == "stdio" else disconnects // 2
    assert client.sessions >= renewals + idle + lost
    assert unsure <= disconnects * CALLERS  # only what was on its way when it was cut off
    assert files_after <= files + 2
    assert threads_after <= threads + 3  # one more for each pool may be at work or idle
    return day


KINDS = ["stdio", "legacy", "modern"]


@pytest.mark.timed  # memory is measured, and that of the measurement of coverage would count
@pytest.mark.unrecorded  # what is kept for the schema check would count
@pytest.mark.parametrize("kind", KINDS)
def test_b17_a_morning(tmp_path: Path, kind: str) -> None:
    tracemalloc.start()
    try:
        day = live(tmp_path, kind, 1_000, 20, 2, 2, 1)
    finally:
        tracemalloc.stop()
    assert day.traced * day.thousands < MOST_LEFT


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("traced", [False, True], ids=["resident", "traced"])
@pytest.mark.parametrize("kind", KINDS)
def test_b17_a_day(tmp_path: Path, kind: str, traced: bool) -> None:
    if traced:
        tracemalloc.start()
    try:
        day = live(tmp_path, kind, 10_000, 200, 20, 20, 5)
    finally:
        tracemalloc.stop()
    # what is traced weighs on what is resident, and neither says everything
    assert (day.traced if traced else day.resident) < MOST_GROWTH
