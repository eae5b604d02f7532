"""The recorder must see what a client sends, and fail the test that sends something wrong."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest

import mcpsync
from tests import recorder
from tests.peers.scripted import peer
from tests.recorder import Heard, Recorder, Sent, Tap, held_to_the_schema, recording

DEMO = [sys.executable, "-m", "mcpsync.demo"]
LATEST = "2025-11-25"


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def sent(message: Any, revision: str = LATEST, tap: Any = None) -> Sent:
    return Sent(tap or Tap(), revision, encoded(message))


def problems_of(*frames: Any, own_methods: Any = ()) -> List[str]:
    records = Recorder(own_methods)
    for frame in frames:
        records.add(frame)
    return records.problems()


def request(method: str, **params: Any) -> Dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


# -- through a client ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["legacy", "modern"])
def test_everything_that_a_client_sends_is_seen(protocol: str) -> None:
    with recording(Recorder()) as records:
        with mcpsync.connect(DEMO, protocol=protocol, elicitation=lambda request: False) as client:
            client.call_tool("echo", {"text": "hi"})
            assert client.call_tool("greet").text
        frames = [json.loads(frame.data) for frame in records._frames if isinstance(frame, Sent)]
        assert records.problems() == []
    methods = [frame.get("method") for frame in frames]
    if protocol == "legacy":
        assert methods == ["initialize", "notifications/initialized", "tools/call", "tools/call", None]
        assert frames[-1]["result"] == {"action": "decline"}
    else:
        assert methods == ["server/discover", "tools/call", "tools/call", "tools/call"]


@pytest.mark.parametrize("protocol", ["legacy", "modern"])
def test_a_wrong_message_fails_its_test(protocol: str) -> None:
    says = r"tools/call breaks CallToolRequest of .* at \.params\.name(.|\n)*sent in 20"
    with pytest.raises(pytest.fail.Exception, match=says), held_to_the_schema():
        client = mcpsync.connect(DEMO, protocol=protocol)
        with client, pytest.raises(mcpsync.McpError):
            client.request("tools/call", {"name": 5})


class WrongRoot(mcpsync.types.Root):
    """What does not travel as a root has to."""

    def to_wire(self) -> Dict[str, Any]:
        return {"url": self.uri}


def test_a_wrong_answer_fails_its_test(tmp_path: Path) -> None:
    says = r"the result of roots/list breaks ListRootsResult of .* at \.roots\[0\]"
    with pytest.raises(pytest.fail.Exception, match=says), held_to_the_schema():
        roots = [WrongRoot("file:///x")]
        with mcpsync.connect(peer(tmp_path).command, protocol="legacy", roots=roots) as client:
            client.call_tool("ask", {"method": "roots/list"})


@pytest.mark.own_methods("x/y")
def test_own_methods_are_let_through_by_their_marker() -> None:
    with mcpsync.connect(DEMO) as client, pytest.raises(mcpsync.RpcError):
        client.request("x/y")


@pytest.mark.unrecorded  # or this test would fail
def test_an_unrecorded_test_is_let_alone() -> None:
    assert recorder._recorder is None
    with mcpsync.connect(DEMO) as client, pytest.raises(mcpsync.RpcError):
        client.request("x/y")


# -- the recorder by itself ------------------------------------------------------------------------------------


def test_each_wrong_message_is_named_each_time() -> None:
    wrong = sent(request("tools/call", name=5))
    assert len(problems_of(wrong, sent(request("ping")), wrong)) == 2
    assert len(problems_of(wrong)) == 1


def test_what_differs_in_a_checked_place_is_checked() -> None:
    assert problems_of(sent(request("logging/setLevel", level="debug"))) == []
    assert len(problems_of(sent(request("logging/setLevel", level="loud")))) == 1
    assert problems_of(sent(request("tools/call", name="x", arguments={}))) == []
    assert len(problems_of(sent(request("tools/call", name="x", arguments=[])))) == 1
    assert problems_of(sent({"jsonrpc": "2.0", "id": 3, "method": "ping"})) == []
    assert len(problems_of(sent({"jsonrpc": "2.0", "id": None, "method": "ping"}))) == 1
    assert problems_of(sent(request("x/y"), LATEST), own_methods=["x/y"]) == []
    assert len(problems_of(sent(request("x/y"), LATEST))) == 1


def test_an_answer_is_held_to_what_was_asked() -> None:
    tap = Tap()
    answer = {"jsonrpc": "2.0", "id": "1", "result": {"action": "decline"}}
    asked = {"jsonrpc": "2.0", "id": "1", "method": "roots/list"}
    assert problems_of(sent(answer, tap=tap)) == []  # asked for by nobody: any client result will do
    assert len(problems_of(Heard(tap, encoded(asked)), sent(answer, tap=tap))) == 1
    assert problems_of(Heard(tap, encoded([{**asked, "id": 1}])), sent(answer, tap=tap)) == []  # 1 is not "1"


@pytest.mark.parametrize("odd_id", [None, True, [], {}])
def test_what_is_asked_under_no_id_is_not_remembered(odd_id: Any) -> None:
    tap = Tap()
    asked = {"jsonrpc": "2.0", "id": odd_id, "method": "roots/list"}
    assert problems_of(Heard(tap, encoded(asked))) == [] and not tap.asked
    answer = {"jsonrpc": "2.0", "id": odd_id, "result": {}}
    assert len(problems_of(sent(answer, tap=tap))) == 1


def test_an_answer_before_anything_is_agreed_on_is_held_to_what_was_offered() -> None:
    tap = Tap()
    answer = Sent(tap, None, encoded({"jsonrpc": "2.0", "id": 1, "result": {}}))
    client = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    assert "no known revision" in problems_of(answer)[0]
    assert problems_of(Sent(tap, None, encoded(request("initialize", **client))), answer) == []


@pytest.mark.parametrize("data", [b"", b"{", b"7", b"\xff"])
def test_what_is_no_message_is_named(data: bytes) -> None:
    assert "must be an object" in problems_of(Sent(Tap(), LATEST, data))[0]


def test_frames_of_several_threads_are_kept() -> None:
    records = Recorder()
    wrong = sent(request("nonsense"))
    threads = [threading.Thread(target=lambda: [records.add(wrong) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(records.problems()) == 400
    assert records.problems() == []
