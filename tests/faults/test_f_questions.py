"""FAULTS.md F6: while a person is asked, clocks stand still, within limits; a server that asks for ever is stopped."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

import mcpsync
from mcpsync import ProtocolError, RequestTimeout, RpcError, Timeouts, UrlElicitationRequired
from tests.faults.watch import Seen, took
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]
QUESTION: Dict[str, Any] = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}


def _asking(era: str, times: Optional[int] = 1) -> Any:
    """Name and arguments of a tool that asks so often (None: endlessly)."""
    if era == "legacy":
        return "ask", {"method": "elicitation/create", "params": QUESTION, "times": 10**9 if times is None else times}
    return "rounds", {"count": times, "questions": {"q": {"method": "elicitation/create", "params": QUESTION}}}


def _slow_person(seconds: float) -> Any:
    def answer(request: Any) -> bool:
        time.sleep(seconds)
        return True

    return answer


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["blocking", "submitted", "caller", "idle"])
def test_f6_the_clock_stands_still_while_a_person_is_asked(tmp_path: Path, era: str, how: str) -> None:
    server = peer(tmp_path, era=era)
    callbacks = "caller" if how == "caller" else "pool"
    with mcpsync.connect(server.command, elicitation=_slow_person(0.8), callbacks=callbacks) as client:
        name, arguments = _asking(era)
        timeout = Timeouts(idle=0.4) if how == "idle" else 0.4
        if how == "submitted":
            result = client.submit(name, arguments, timeout=timeout).result(timeout=10)
        else:
            result = client.call_tool(name, arguments, timeout=timeout)
        assert "accept" in result.text
    assert server.received("notifications/cancelled") == []


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_f6_the_clock_goes_on_where_it_stood(tmp_path: Path, era: str) -> None:
    """0.5 s of its time before, 0.6 s of a person's time, and what is left of its time after that."""

    def ask_then_silence(server: Any, request: Any, question: Any) -> Any:
        if "inputResponses" in request["params"]:
            return None
        if server.config["era"] == "legacy":
            server.after(0.5, lambda: server.ask("elicitation/create", question, lambda answer: None, "q"))
            return None
        time = __import__("time")
        time.sleep(0.5)
        return {
            "resultType": "input_required",
            "inputRequests": {"q": {"method": "elicitation/create", "params": question}},
        }

    server = peer(tmp_path, ask_then_silence, era=era)
    with mcpsync.connect(server.command, elicitation=_slow_person(0.6)) as client:
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool("ask_then_silence", {"question": QUESTION}, timeout=1.0)
        assert 1.6 <= ended.seconds < 2.2


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_f6_total_never_pauses(tmp_path: Path, era: str) -> None:
    release = threading.Event()
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command, elicitation=lambda request: release.wait(10)) as client:
        name, arguments = _asking(era)
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool(name, arguments, timeout=Timeouts(call=0.3, total=0.7))
        assert 0.7 <= ended.seconds < 1.2
        release.set()
        assert client.call_tool("echo", {"text": "on"}).text == "on"


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_f6_a_question_that_nobody_answers_is_cancelled(tmp_path: Path, era: str) -> None:
    release = threading.Event()
    server = peer(tmp_path, era=era)
    timeouts = Timeouts(call=5, ask=0.4)
    with mcpsync.connect(server.command, elicitation=lambda request: release.wait(10), timeouts=timeouts) as client:
        name, arguments = _asking(era)
        with took() as ended:
            answer = json.loads(client.call_tool(name, arguments).text)
        assert (answer["result"] if era == "legacy" else answer["q"]) == {"action": "cancel"}
        assert 0.4 <= ended.seconds < 1.5
        release.set()


@pytest.mark.timed
def test_f6_all_pauses_of_one_call_together_last_no_longer_than_ask(tmp_path: Path) -> None:
    """A legacy server asks again and again; each question takes 0.2 s, the call has 0.5 s of its own."""
    server = peer(tmp_path, era="legacy")
    timeouts = Timeouts(call=0.5, ask=1.0)
    with mcpsync.connect(server.command, elicitation=_slow_person(0.2), timeouts=timeouts) as client:
        name, arguments = _asking("legacy", None)
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool(name, arguments)
        assert 1.4 <= ended.seconds < 2.5
        assert len(server.wait_for("notifications/cancelled")) == 1


@pytest.mark.timed
def test_f6_pauses_of_a_modern_call_are_limited_too(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    timeouts = Timeouts(call=0.5, ask=1.0)
    limits = mcpsync.Limits(rounds=1_000)
    with mcpsync.connect(server.command, elicitation=_slow_person(0.2), timeouts=timeouts, limits=limits) as client:
        name, arguments = _asking("modern", None)
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool(name, arguments)
        assert 1.4 <= ended.seconds < 2.5


def test_f6_rounds_are_limited(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    asked = Seen()

    def answer(request: Any) -> bool:
        asked(request)
        return True

    with mcpsync.connect(server.command, elicitation=answer) as client:
        name, arguments = _asking("modern", None)
        with pytest.raises(ProtocolError, match="more than 10 times"):
            client.call_tool(name, arguments)
        assert len(asked.items) == 10
        with pytest.raises(ProtocolError, match="more than 10 times"):
            client.submit(name, arguments).result(timeout=10)
        assert client.call_tool(*_asking("modern", 10)).text
    limits = mcpsync.Limits(rounds=2)
    client = mcpsync.connect(server.command, elicitation=answer, limits=limits)
    with client, pytest.raises(ProtocolError, match="more than 2 times"):
        client.call_tool(name, arguments)


@pytest.mark.timed
def test_f6_other_calls_of_the_connection_pause_too_on_stdio(tmp_path: Path) -> None:
    """Which call a legacy question belongs to cannot be known: it may be any that was in flight."""
    server = peer(tmp_path, era="legacy")
    with mcpsync.connect(server.command, elicitation=_slow_person(0.8)) as client:
        other = client.submit("sleep", {"seconds": 0.7, "text": "paused too"}, timeout=0.4)
        server.wait_for("tools/call")
        assert "accept" in client.call_tool(*_asking("legacy"), timeout=0.4).text
        assert other.result(timeout=5).text == "paused too"


@pytest.mark.timed
def test_f6_other_calls_do_not_pause_where_the_call_is_known(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command, elicitation=_slow_person(0.8)) as client:
        asking = client.submit(*_asking("modern"), timeout=0.4)
        server.wait_for("tools/call")
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool("silent", timeout=0.4)
        assert ended.seconds < 0.75
        assert "accept" in asking.result(timeout=5).text


@pytest.mark.timed
def test_f6_a_second_question_pauses_what_began_after_the_first(tmp_path: Path) -> None:
    first_answered, release = threading.Event(), threading.Event()

    def person(request: Any) -> bool:
        if request.message == "first":
            release.wait(10)
            first_answered.set()
        else:
            time.sleep(0.8)
        return True

    def question(message: str) -> Dict[str, Any]:
        return {"method": "elicitation/create", "params": {**QUESTION, "message": message}}

    server = peer(tmp_path, era="legacy")
    with mcpsync.connect(server.command, elicitation=person) as client:
        first = client.submit("ask", question("first"), timeout=5)
        server.wait_for("tools/call")
        assert "accept" in client.call_tool("ask", question("second"), timeout=0.4).text
        release.set()
        assert "accept" in first.result(timeout=5).text
        assert first_answered.is_set()


@pytest.mark.timed
def test_f6_progress_during_a_question_does_not_start_the_clock(tmp_path: Path) -> None:
    def ask_with_progress(server: Any, request: Any, question: Any) -> None:
        def tick(number: int) -> None:
            server.progress(request, number)
            if number < 5:
                server.after(0.05, lambda: tick(number + 1))

        server.ask("elicitation/create", question, lambda answer: server.text(request, str(answer)), "q")
        tick(1)

    server = peer(tmp_path, ask_with_progress, era="legacy")
    with mcpsync.connect(server.command, elicitation=_slow_person(1.2)) as client:
        result = client.call_tool(
            "ask_with_progress",
            {"question": QUESTION},
            on_progress=lambda progress: None,
            timeout=Timeouts(idle=0.4),
        )
        assert "accept" in result.text


@pytest.mark.timed
def test_f6_a_withdrawn_question_lets_the_clock_go_on(tmp_path: Path) -> None:
    release = threading.Event()

    def withdraw_then_silence(server: Any, request: Any, question: Any) -> None:
        server.ask("elicitation/create", question, lambda answer: server.record("reply"), "gone")
        server.after(0.2, lambda: server.notify("notifications/cancelled", {"requestId": "gone"}))

    server = peer(tmp_path, withdraw_then_silence, era="legacy")
    with mcpsync.connect(server.command, elicitation=lambda request: release.wait(10)) as client:
        with took() as ended, pytest.raises(RequestTimeout):
            client.call_tool("withdraw_then_silence", {"question": QUESTION}, timeout=0.5)
        assert 0.6 <= ended.seconds < 3
        release.set()
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    assert server.events("reply") == []


@pytest.mark.parametrize("probe", ["silent", "answered"])
def test_f6_a_question_before_the_session_is_there(tmp_path: Path, probe: str) -> None:
    """Not allowed but for ping, and survived all the same, with the probe still in flight."""

    def ask_first(server: Any, request: Any, **params: Any) -> None:
        server.ask("roots/list", {}, lambda answer: server.result(request, server.initialized(params)), "early")

    opening: Dict[str, Any] = {"server/discover": "silent"} if probe == "silent" else {}
    server = peer(tmp_path, era="legacy", handlers={"initialize": ask_first}, opening=opening)
    with mcpsync.connect(server.command, roots=["/"], elicitation=lambda request: True) as client:
        assert "accept" in client.call_tool(*_asking("legacy")).text
        assert client.sessions == 1


def test_f6_an_answer_without_a_json_form_is_an_error_for_the_server(tmp_path: Path) -> None:
    answer = mcpsync.types.ElicitationResult.accept({"when": float("nan")})
    server = peer(tmp_path, era="legacy")
    with mcpsync.connect(server.command, elicitation=lambda request: answer) as client:
        said = json.loads(client.call_tool(*_asking("legacy")).text)
        assert said["error"]["code"] == -32603


# -- input_required rounds -------------------------------------------------------------------------------------


def test_f6_request_state_is_echoed_byte_for_byte_under_new_ids(tmp_path: Path) -> None:
    state = 'a "state" \\ with é, \u2028, \x7f, \U0001f600 and  spaces '
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command, elicitation=lambda request: True) as client:
        name, arguments = _asking("modern", 3)
        assert client.call_tool(name, {**arguments, "state": state}).text
    calls = server.received("tools/call")
    states = [call["params"].get("requestState") for call in calls]
    assert states == [None] + ["%s #%d" % (state, number) for number in (1, 2, 3)]
    assert len({call["id"] for call in calls}) == 4
    assert all(call["params"]["arguments"] == calls[0]["params"]["arguments"] for call in calls)


def test_f6_state_without_questions_is_just_sent_back(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command) as client:
        assert client.call_tool("rounds", {"count": 2, "questions": None}).text == "null"
    assert ["inputResponses" in call["params"] for call in server.received("tools/call")] == [False] * 3


def test_f6_parallel_calls_keep_their_states_apart(tmp_path: Path) -> None:
    """The peer refuses a state that comes with other arguments, twice, or that it never gave."""
    server = peer(tmp_path, era="modern")

    def answer(request: Any) -> Dict[str, Any]:
        time.sleep(0.001)  # a person takes time, so the calls mix
        return {"said": request.message}

    schema = {"type": "object", "properties": {"said": {"type": "string"}}}
    with mcpsync.connect(server.command, elicitation=answer) as client:
        calls = []
        for number in range(24):
            params = {"message": "call %d" % number, "requestedSchema": schema}
            questions = {"q": {"method": "elicitation/create", "params": params}}
            calls.append(client.submit("rounds", {"count": 3, "questions": questions, "state": "of %d" % number}))
        for number, call in enumerate(calls):
            said = json.loads(call.result(timeout=20).text)
            assert said == {"q": {"action": "accept", "content": {"said": "call %d" % number}}}


def test_f6_a_question_that_was_not_offered_is_an_error_of_the_call(tmp_path: Path) -> None:
    server = peer(tmp_path, era="modern")
    with mcpsync.connect(server.command) as client:
        with pytest.raises(RpcError, match="elicitation/create"):
            client.call_tool(*_asking("modern"))
        assert client.call_tool("echo", {"text": "on"}).text == "on"


def test_f6_the_server_dies_while_a_person_is_asked(tmp_path: Path) -> None:
    asked, release = threading.Event(), threading.Event()

    def person(request: Any) -> bool:
        asked.set()
        return release.wait(10)

    for era in ERAS:
        server = peer(tmp_path, era=era)
        with mcpsync.connect(server.command, elicitation=person) as client:
            call = client.submit(*_asking(era))
            assert asked.wait(10)
            os.kill(server.pids()[0], signal.SIGKILL)
            assert isinstance(call.exception(timeout=2), mcpsync.ConnectionLost)
        asked.clear()
    release.set()


# -- URL elicitation -------------------------------------------------------------------------------------------


@pytest.mark.timed
@pytest.mark.parametrize("complete", [0.0, 0.4, None])
@pytest.mark.parametrize("how", ["blocking", "submitted", "caller"])
def test_f6_url_elicitation_completed_before_after_and_never(
    tmp_path: Path, complete: Optional[float], how: str
) -> None:
    server = peer(tmp_path, era="legacy")
    seen = Seen()

    def visit(request: Any) -> bool:
        seen(request.url)
        time.sleep(0.2)
        return True

    timeouts = Timeouts(call=0.5, ask=1.0)
    callbacks = "caller" if how == "caller" else "pool"
    with mcpsync.connect(server.command, elicitation=visit, timeouts=timeouts, callbacks=callbacks) as client:
        arguments = {"url": "https://example.com/go", "complete": complete}
        with took() as ended:
            if how == "submitted":
                result = client.submit("url_required", arguments).result(timeout=10)
            else:
                result = client.call_tool("url_required", arguments)
        assert result.text == "done"
        assert seen.items == ["https://example.com/go"]
        least = {0.0: 0.2, 0.4: 0.4, None: 1.2}[complete]
        assert least <= ended.seconds < least + 0.6
    assert len(server.received("tools/call")) == 2


def test_f6_url_elicitation_again_and_again(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    client = mcpsync.connect(server.command, elicitation=lambda request: True)
    with client, pytest.raises(ProtocolError, match="more than 10 times"):
        client.call_tool("url_required", {"refuse": 100})


@pytest.mark.parametrize("handler", ["none", "declines"])
def test_f6_url_elicitation_that_is_not_visited(tmp_path: Path, handler: str) -> None:
    server = peer(tmp_path, era="legacy")
    options: Dict[str, Any] = {} if handler == "none" else {"elicitation": lambda request: False}
    with mcpsync.connect(server.command, **options) as client:
        with pytest.raises(UrlElicitationRequired) as error:
            client.call_tool("url_required", {"url": "https://example.com/"})
        assert error.value.data["elicitations"][0]["url"] == "https://example.com/"
    assert len(server.received("tools/call")) == 1
