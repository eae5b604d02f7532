"""The speeds that the project promises, in the short form: clients in turns, pinned to one CPU, best against best.

``tox -e bench`` builds what this needs; ``BENCH_HOME`` says where. docs/performance.md has the full table.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from tests.benchmarks.harness import measure

ROUNDS = 3
# Of a promise, on a machine that does other things as well and in three rounds: what is below is a regression. Whether
# the promise itself is kept is measured on a quiet machine, in more rounds: docs/performance.md.
CREDIBLE = 0.7
FLOOR, SDK, OURS, SPEED = "floor", "mcp_sync", "mcpsync", "mcpsync_orjson"

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1200)]


class Promise(NamedTuple):
    """One promise: how many times quicker than the other client, at least (or slower, at most)."""

    case: str
    metric: str
    client: str
    against: str
    at_least: float = 0.0
    at_most: float = 0.0


CASES = {
    "serial": "--case serial --n 1500",
    "conc8": "--case conc8 --n 2000",
    "conc64": "--case conc64 --n 2000",
    "connect": "--case connect --n 5",
    "firstcall": "--case firstcall --n 3",
    "HTTP, JSON": "--transport http --case serial --n 500",
    "HTTP, events": "--transport http --resp sse --case serial --n 500",
    "HTTP, 8 threads": "--transport http --case conc8 --n 600",
    "HTTP, 64 threads": "--transport http --case conc64 --n 600",
    "HTTP, connect": "--transport http --case connect --n 5",
    "HTTP, firstcall": "--transport http --case firstcall --n 3",
    "HTTP, progress": "--transport http --resp sse --case progress --n 2000",
    "HTTP, 10 MB": "--transport http --case blob10m --n 3",
}
PROMISES = [
    Promise("serial", "us_per_call", OURS, SDK, at_least=12),
    Promise("serial", "us_per_call", OURS, FLOOR, at_most=1.6),
    Promise("serial", "us_per_call", SPEED, SDK, at_least=14),
    Promise("conc8", "us_per_call", OURS, SDK, at_least=10),
    Promise("conc64", "us_per_call", OURS, SDK, at_least=8),
    Promise("connect", "connect_first_call_ms", OURS, SDK, at_least=2.2),
    Promise("connect", "close_ms", OURS, SDK, at_least=5),
    Promise("firstcall", "first_result_ms", OURS, SDK, at_least=8),
    Promise("HTTP, JSON", "us_per_call", OURS, SDK, at_least=5),
    Promise("HTTP, events", "us_per_call", OURS, SDK, at_least=6.5),
    Promise("HTTP, 8 threads", "us_per_call", OURS, SDK, at_least=5),
    Promise("HTTP, 64 threads", "us_per_call", OURS, SDK, at_least=5),
    Promise("HTTP, connect", "connect_first_call_ms", OURS, SDK, at_least=10),
    Promise("HTTP, firstcall", "first_result_ms", OURS, SDK, at_least=4),
    Promise("HTTP, progress", "us_per_event", OURS, SDK, at_least=8),
    Promise("HTTP, 10 MB", "text_ms", OURS, SDK, at_least=1.2),
    Promise("HTTP, 10 MB", "struct_ms", OURS, SDK, at_least=4),
]


@pytest.fixture(scope="module")
def home() -> str:
    found = os.environ.get("BENCH_HOME", "")
    assert Path(found, "servers", "echod").is_file(), "BENCH_HOME has no harness: tests/benchmarks/setup.sh makes it"
    return found


def in_turns(home: str, arguments: str, clients: List[str], rounds: int) -> Dict[str, Dict[str, float]]:
    """The best of every figure, by client."""
    cpu = max(os.sched_getaffinity(0))
    got: Dict[str, List[Dict[str, float]]] = {client: [] for client in clients}
    for turn in range(rounds):
        for client in clients if turn % 2 == 0 else clients[::-1]:
            result = measure(client, arguments, home, cpu)
            assert "error" not in result, "%s, %s: %s" % (client, arguments, result["error"])
            got[client].append({key: value for key, value in result.items() if isinstance(value, (int, float))})
    return {client: {key: min(run[key] for run in runs) for key in runs[0]} for client, runs in got.items()}


@pytest.mark.parametrize("case", list(CASES))
def test_ratios(home: str, case: str) -> None:
    promises = [promise for promise in PROMISES if promise.case == case]
    clients = list(dict.fromkeys(name for promise in promises for name in (promise.against, promise.client)))
    best = in_turns(home, CASES[case], clients, ROUNDS)
    broken = []
    for promise in promises:
        ours, theirs = best[promise.client][promise.metric], best[promise.against][promise.metric]
        ratio, kept = (theirs / ours, "x quicker than") if promise.at_least else (ours / theirs, "x the time of")
        least, most = promise.at_least * CREDIBLE, promise.at_most / CREDIBLE
        held = ratio >= least if promise.at_least else ratio <= most
        limit = "promised %g, at least %.1f here" % (promise.at_least, least)
        if promise.at_most:
            limit = "promised %g, at most %.1f here" % (promise.at_most, most)
        line = "%s %s: %s %.1f, %s %.1f; %.2f %s it, %s" % (
            *(case, promise.metric, promise.client, ours, promise.against, theirs, ratio, kept),
            limit,
        )
        print(line)
        if not held:
            broken.append(line)
    assert not broken, "\n".join(broken)


def test_import(home: str) -> None:
    best = in_turns(home, "--case import --n 7", [OURS], 1)[OURS]
    print("import: %.1f ms, %.1f MB over bare Python" % (best["import_ms"], best["rss_added_mb"]))
    assert best["import_ms"] <= 30
    assert best["rss_added_mb"] <= 6


def test_idle(home: str) -> None:
    """No thread wakes up while nothing happens; the one switch is the measuring thread's own sleep."""
    best = in_turns(home, "--case conns50 --n 5 --idle 10", [OURS], 1)[OURS]
    print("idle: %.2f context switches/s with 5 connections" % best["idle_ctx_switches_per_s"])
    assert best["idle_ctx_switches_per_s"] * 10 <= 2
