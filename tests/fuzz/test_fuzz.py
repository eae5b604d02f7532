"""Random inputs, led by coverage; the long form is an hour (``pytest -m soak tests/fuzz``)."""

from __future__ import annotations

import time

import pytest

from tests.fuzz.fuzzer import FINDS, Fuzzer
from tests.fuzz.targets import TARGETS

SHORT = {"framing": 1500, "json": 1500, "session": 800, "sse": 600, "config": 60}
LONG_SECONDS = 720.0


@pytest.mark.once
@pytest.mark.parametrize("name", TARGETS)
def test_holds_for_inputs_like_these(name: str) -> None:
    fuzzer = Fuzzer(TARGETS[name], 11)
    found = list(fuzzer.finds(lambda: fuzzer.tried < SHORT[name]))
    assert not found
    assert fuzzer.kept > 3 and fuzzer.steps > 20  # it was led by something


@pytest.mark.parametrize(
    "name, find", [(name, path.name) for name in TARGETS for path in sorted((FINDS / name).glob("*"))]
)
def test_stays_mended(name: str, find: str) -> None:
    TARGETS[name].check((FINDS / name / find).read_bytes())


@pytest.mark.soak
@pytest.mark.timeout(LONG_SECONDS * 2)
@pytest.mark.parametrize("name", TARGETS)
def test_holds_for_long(name: str) -> None:
    fuzzer = Fuzzer(TARGETS[name], int(time.time()))
    end = time.monotonic() + LONG_SECONDS
    assert not list(fuzzer.finds(lambda: time.monotonic() < end))
