"""Which failed requests are made again."""

from __future__ import annotations

from typing import Optional

import pytest

from mcpsync.core.era import REVISIONS
from mcpsync.core.jsonrpc import HEADER_MISMATCH
from mcpsync.core.repeats import Again, Repeats, repeat
from mcpsync.core.rounds import Ask, Done, Failed, Rounds
from mcpsync.errors import ConnectionLost, HttpError, McpError, ProcessExited, RpcError, SessionLost

LOST = ConnectionLost("gone", maybe_executed=True)
UNSENT = ConnectionLost("gone")
FORGOTTEN = SessionLost("no such session")
MISMATCH = RpcError.of(HEADER_MISMATCH, "headers", None)


def busy(status: int = 429, retry_after: Optional[float] = 0.5) -> HttpError:
    return HttpError("busy", status=status, retry_after=retry_after)


@pytest.mark.parametrize("method", ["tools/call", "tools/list", "x/y"])
@pytest.mark.parametrize("stateless", [False, True])
def test_a_session_that_is_gone_executed_nothing(method: str, stateless: bool) -> None:
    repeats = Repeats(method)
    assert repeats.step(FORGOTTEN, False, stateless) == Again(FORGOTTEN, "session")
    assert repeats.step(FORGOTTEN, False, stateless) is None


def test_what_never_left_a_channel_that_nobody_needed_goes_over_the_next() -> None:
    assert repeat("tools/call", UNSENT, True, False) == Again(UNSENT, "session")
    assert repeat("tools/call", UNSENT, False, False) is None
    assert repeat("tools/call", LOST, True, False) is None


@pytest.mark.parametrize(
    ("method", "failure", "stateless", "again"),
    [
        ("tools/list", LOST, True, True),
        ("resources/read", LOST, True, True),
        ("tools/list", LOST, False, False),
        ("tools/list", UNSENT, True, False),
        ("tools/call", LOST, True, False),
        ("x/y", LOST, True, False),
    ],
)
def test_a_lost_answer(method: str, failure: McpError, stateless: bool, again: bool) -> None:
    repeats = Repeats(method)
    assert repeats.step(failure, False, stateless) == (Again(failure, "lost") if again else None)
    assert repeats.step(failure, False, stateless) is None


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_request_that_is_put_off(status: int) -> None:
    repeats = Repeats("tools/list")
    failure = busy(status)
    for _ in range(5):
        assert repeats.step(failure, False, True) == Again(failure, "delay", 0.5)
    assert repeats.step(failure, False, True) is None


@pytest.mark.parametrize(
    ("method", "failure"),
    [("tools/call", busy()), ("tools/list", busy(retry_after=None)), ("tools/list", busy(403)), ("x/y", busy())],
)
def test_a_request_that_is_refused(method: str, failure: McpError) -> None:
    assert repeat(method, failure, False, True) is None


def test_a_tool_that_wants_other_headers() -> None:
    repeats = Repeats("tools/call")
    assert repeats.step(MISMATCH, False, True) == Again(MISMATCH, "tools")
    assert repeats.step(MISMATCH, False, True) is None
    assert repeat("tools/list", MISMATCH, False, True) is None


@pytest.mark.parametrize("failure", [RpcError("no", code=-32602), ProcessExited("died", exit_code=1)])
def test_any_other_failure_is_the_calls(failure: McpError) -> None:
    assert repeat("tools/call", failure, False, True) is None


def test_the_request_of_a_later_round_is_made_again_with_what_it_carried() -> None:
    rounds = Rounds("resources/read", {"uri": "a:b"}, REVISIONS["2026-07-28"])
    assert rounds.same_params() == {"uri": "a:b"}
    question = {"method": "elicitation/create", "params": {"message": "?"}}
    asked = rounds.step({"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s"}, None)
    assert isinstance(asked, Ask)
    second = rounds.next_params({"q": {"action": "decline"}})
    assert rounds.step(None, LOST, False, True) == Again(LOST, "lost")
    assert rounds.same_params() == second
    assert rounds.step({"resultType": "complete"}, None) == Done({"resultType": "complete"})


def test_a_failure_that_is_not_repeated_ends_the_rounds() -> None:
    rounds = Rounds("tools/call", {"name": "t"}, REVISIONS["2026-07-28"])
    assert rounds.step(None, LOST, False, True) == Failed(LOST)
