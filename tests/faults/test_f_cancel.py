"""FAULTS.md F1, F2, F4: a call ends exactly once, and the server hears of it exactly once."""

from __future__ import annotations

import concurrent.futures
import signal
import threading
from pathlib import Path
from typing import Any, Callable

import pytest

import mcpsync
from mcpsync import ConnectionLost, RequestCancelled, RequestTimeout, Timeouts
from tests.faults.watch import Seen, took
from tests.peers.scripted import Peer, peer

ERAS = ["legacy", "modern"]


def _cancelled(server: Peer, count: int = 1) -> Any:
    """The ids that the server was told of; exact once the connection is closed."""
    server.wait_ended()
    told = server.received("notifications/cancelled")
    assert len(told) == count
    return [each["params"]["requestId"] for each in told]


def _interrupt_soon(server: Peer) -> Callable[[], None]:
    """Ctrl-C for the main thread as soon as the server has its call."""
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        server.wait_for("tools/call")
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread.join


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["timeout", "cancel", "ctrl-c", "total", "submitted timeout"])
def test_f1_exactly_one_cancel_with_the_right_id(tmp_path: Path, era: str, how: str) -> None:
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command) as client:
        with took() as ended:
            if how == "timeout":
                with pytest.raises(RequestTimeout, match=r"no answer within 0\.3 s") as error:
                    client.call_tool("silent", timeout=0.3)
                assert error.value.after == 0.3
            elif how == "total":
                with pytest.raises(RequestTimeout):
                    client.call_tool("silent", timeout=Timeouts(call=60, total=0.3))
            elif how == "submitted timeout":
                with pytest.raises(RequestTimeout):
                    client.submit("silent", timeout=0.3).result()
            elif how == "cancel":
                call = client.submit("silent")
                server.wait_for("tools/call")
                assert call.cancel() and call.cancelled() and call.done()
                assert call.cancel()  # as any Future that was cancelled
                with pytest.raises(RequestCancelled) as cancelled:
                    call.result()
                assert isinstance(cancelled.value, concurrent.futures.CancelledError)
            else:  # B11 as well
                join = _interrupt_soon(server)
                with pytest.raises(KeyboardInterrupt):
                    client.call_tool("silent", timeout=60)
                join()
        assert ended.seconds < 1
        server.wait_for("notifications/cancelled")
        assert client.call_tool("echo", {"text": "usable"}).text == "usable"
    silent = next(call for call in server.received("tools/call") if call["params"]["name"] == "silent")
    assert _cancelled(server) == [silent["id"]]


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_f1_late_answers_and_late_progress_are_dropped(
    tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command) as client:
        with pytest.raises(RequestTimeout):
            client.call_tool("sleep", {"seconds": 0.4}, timeout=0.1)
        call = client.submit("sleep", {"seconds": 0.3})
        assert call.cancel()
        server.wait_event("answered", 2)
        seen = Seen()
        assert client.call_tool("late_progress", on_progress=seen).text == "answered"
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        assert call.cancelled()
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
    assert seen.items == []


def test_f1_cancel_wakes_wait_and_as_completed(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        calls = [client.submit("silent") for _ in range(5)]
        server.wait_for("tools/call", 5)
        done = Seen()
        for call in calls:
            call.add_done_callback(done)
        threading.Timer(0.05, lambda: [call.cancel() for call in calls]).start()
        assert len(list(concurrent.futures.as_completed(calls, timeout=5))) == 5
        assert concurrent.futures.wait(calls, timeout=5).not_done == set()
        done.wait_count(5)
    assert sorted(_cancelled(server, 5)) == sorted(call["id"] for call in server.received("tools/call"))


def test_f1_result_timeout_does_not_cancel(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        call = client.submit("sleep", {"seconds": 0.3})
        with pytest.raises(TimeoutError):
            call.result(timeout=0.05)
        assert call.result(timeout=5).text == "slept"
        assert not call.cancel()
    assert _cancelled(server, 0) == []


def test_f1_cancel_raced_against_the_answer(tmp_path: Path) -> None:
    """Whoever comes first decides; cancel() says which, and a cancelled call has no result."""
    server = peer(tmp_path)
    won = 0
    with mcpsync.connect(server.command) as client:
        for number in range(300):
            call = client.submit("echo", {"text": str(number)})
            if number % 3:
                concurrent.futures.wait([call], timeout=0.00005 * (number % 50))
            if call.cancel():
                won += 1
                assert call.cancelled()
                with pytest.raises(RequestCancelled):
                    call.result(timeout=1)
            else:
                assert call.result(timeout=1).text == str(number)
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    assert len(_cancelled(server, won)) == won
    assert 0 < won < 300


@pytest.mark.timed
def test_f1_timeouts_raced_against_the_answer(tmp_path: Path) -> None:
    server = peer(tmp_path)
    late = 0
    with mcpsync.connect(server.command) as client:
        for _ in range(150):
            try:
                assert client.call_tool("jumbled", {"text": "x", "within": 0.02}, timeout=0.01).text == "x"
            except RequestTimeout:
                late += 1
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    assert len(_cancelled(server, late)) == late
    assert 0 < late < 150


@pytest.mark.parametrize("era", ERAS)
def test_f1_cancel_between_two_requests_of_a_call(tmp_path: Path, era: str) -> None:
    """While a person is asked no request is in flight in the modern era: nothing to cancel on the wire."""
    asked, release = threading.Event(), threading.Event()

    def person(request: Any) -> bool:
        asked.set()
        release.wait(10)
        return True

    question = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command, elicitation=person) as client:
        if era == "modern":
            questions = {"q": {"method": "elicitation/create", "params": question}}
            call = client.submit("rounds", {"questions": questions})
        else:
            call = client.submit("ask", {"method": "elicitation/create", "params": question})
        assert asked.wait(10)
        assert call.cancel() and call.cancelled()
        release.set()
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    _cancelled(server, 1 if era == "legacy" else 0)
    assert len(server.received("tools/call")) == 2


@pytest.mark.parametrize("era", ERAS)
def test_f2_a_lost_answer_is_never_asked_for_again(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    states = Seen()
    with mcpsync.connect(server.command, on_state=states, backoff=mcpsync.Backoff((0.05,))) as client:
        call = client.submit("die")
        with pytest.raises(ConnectionLost, match="the server may have executed it") as error:
            call.result(timeout=5)
        assert error.value.maybe_executed
        states.wait_for("ready", 2)
        with pytest.raises(ConnectionLost) as blocking:
            client.call_tool("die")
        assert blocking.value.maybe_executed
        states.wait_for("ready", 3)
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    assert [call["params"]["name"] for call in server.received("tools/call")] == ["die", "die", "echo"]


@pytest.mark.parametrize("era", ERAS)
def test_f4_one_tool_times_out_in_an_agents_run(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    outcomes = []
    with mcpsync.connect(server.command, name="tools", timeouts=Timeouts(call=0.3)) as client:
        for name, arguments in [("echo", {"text": "one"}), ("silent", {}), ("busy", {"seconds": 0.5}), ("echo", {})]:
            try:
                outcomes.append(client.call_tool(name, arguments).text)
            except RequestTimeout as error:
                assert isinstance(error, TimeoutError)
                assert (error.server, error.method, error.after) == ("tools", "tools/call", 0.3)
                outcomes.append("late")
                if name == "busy":
                    server.wait_for("notifications/cancelled", 2)
        assert client.sessions == 1
    assert outcomes == ["one", "late", "late", ""]


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_f4_one_dead_call_never_delays_anothers_deadline(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    late = Seen()

    def call(seconds: float) -> None:
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool("silent", timeout=seconds)
        late(ended.seconds - seconds)

    with mcpsync.connect(server.command) as client:
        client.call_tool("stop_reading")
        threads = [threading.Thread(target=call, args=(0.2 + 0.02 * number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(late.items) == 16
    assert max(late.items) < 0.15
