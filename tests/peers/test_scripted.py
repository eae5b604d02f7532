"""The scripted peers do what the fault tests rely on; spoken to with bare pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any, List

import pytest

from tests.interop.raw import RawPeer
from tests.peers.scripted import Peer, peer


@pytest.fixture
def talk(tmp_path):
    """Start a peer with these options and talk to it."""
    open_ones = []

    def start(*functions: Any, **options: Any):
        server = peer(tmp_path, *functions, **options)
        raw = RawPeer(server.command)
        open_ones.append((raw, server))
        return raw, server

    yield start
    for raw, server in open_ones:
        raw.__exit__()
        server.wait_ended()


def call(raw: RawPeer, name: str, **arguments: Any) -> Any:
    return raw.request("tools/call", {"name": name, "arguments": arguments})


def said(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def lines_of(server: Peer, *requests: Any, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Everything the peer writes in answer to these tool calls, until stdin ends."""
    messages = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(requests, 1)
    ]
    data = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    return subprocess.run(server.command, input=data, capture_output=True, timeout=30, check=False, **more)


# --- opening


def test_both_eras_by_default(talk):
    raw, server = talk()
    assert raw.modern("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
    assert raw.initialize("2025-06-18")["protocolVersion"] == "2025-06-18"
    server.wait_for("notifications/initialized")
    methods = [message["method"] for message in server.received()]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize(("era", "unknown"), [("legacy", "server/discover"), ("modern", "initialize")])
def test_one_era_only(talk, era, unknown):
    raw, _ = talk(era=era)
    assert raw.modern(unknown)["error"]["code"] == -32601


def test_versions(talk):
    raw, _ = talk(supported=["2030-01-01"], revision="1999-01-01", capabilities={})
    assert raw.modern("server/discover")["error"]["data"]["supported"] == ["2030-01-01"]
    assert raw.initialize("2025-11-25") == {
        "protocolVersion": "1999-01-01",
        "capabilities": {},
        "serverInfo": {"name": "scripted", "version": "1"},
    }


@pytest.mark.parametrize("method", ["server/discover", "initialize"])
def test_odd_openings(talk, method):
    refusal = {"code": -32000, "message": "not today"}
    raw, _ = talk(opening={method: {"error": refusal, "delay": 0.01}})
    assert raw.modern(method)["error"] == refusal
    raw, _ = talk(opening={method: {"result": {"odd": 1}}})
    assert raw.modern(method)["result"] == {"odd": 1}
    raw, _ = talk(opening={method: {"delay": 0.01}})
    assert raw.modern(method)["result"]["capabilities"]["tools"]
    raw, server = talk(opening={method: {"exit": 7}})
    raw.begin(method)
    server.wait_for(method)
    server.wait_ended()
    raw, _ = talk(opening={method: "silent"})
    raw.begin(method)
    assert said(call(raw, "echo", text="only this")) == "only this"


def test_words_before_the_first_and_an_early_end(tmp_path):
    server = peer(tmp_path, banner=b"hi \xff\n", stderr="no licence\n", exit_at_start=2)
    done = lines_of(server)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"hi \xff\n", b"no licence\n")
    assert server.received() == []


# --- recording and waiting


def test_waiting_for_what_does_not_come_says_what_came(talk):
    raw, server = talk()
    call(raw, "echo")
    with pytest.raises(AssertionError, match=r"1 of 2 messages tools/call within 0.1 s; recorded: (.|\n)*echo"):
        server.wait_for("tools/call", 2, timeout=0.1)
    with pytest.raises(AssertionError, match=r"process \d+ still runs"):
        server.wait_ended(timeout=0.05)


def test_a_wait_ends_as_soon_as_the_message_is_there(talk):
    raw, server = talk()
    call(raw, "echo")
    raw.notify("notifications/cancelled", {"requestId": 77})
    started = time.monotonic()
    assert server.wait_for("notifications/cancelled", timeout=30)[0]["params"] == {"requestId": 77}
    assert time.monotonic() - started < 10


def test_each_start_adds_to_the_record(tmp_path):
    server = peer(tmp_path)
    for _ in range(2):
        lines_of(server, ("echo", {}))
    assert len(set(server.pids())) == 2
    assert len(server.received("tools/call")) == 2
    assert len(server.events("eof")) == 2
    assert server.alive() == []


def test_what_is_no_message_is_recorded_as_torn(talk):
    raw, server = talk()
    raw._process.stdin.write(b'{"half\n')
    assert server.wait_event("torn")[0]["data"] == '{"half'


def own_tool(server, request, number):
    import math

    return str(math.factorial(number))


def own_ping(server, request):
    return {"pong": True}


def test_functions_of_the_test(talk):
    raw, _ = talk(own_tool, handlers={"ping": own_ping})
    assert said(call(raw, "own_tool", number=5)) == "120"
    assert raw.request("ping")["result"] == {"pong": True}
    names = [tool["name"] for tool in raw.request("tools/list")["result"]["tools"]]
    assert {"own_tool", "echo", "silent"} <= set(names)
    assert not {"own_ping", "three_pages"} & set(names)


# --- processes


def test_it_can_be_hard_to_end(talk):
    raw, server = talk(ignore_eof=True, ignore_term=True)
    call(raw, "echo")
    raw._process.stdin.close()
    server.wait_event("eof")
    raw._process.terminate()
    assert server.wait_event("signal")[0]["number"] == signal.SIGTERM
    assert server.alive() == server.pids()


@pytest.mark.parametrize("kind", ["fork", "setsid", "double-fork"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_grandchild_outlives_the_peer_and_holds_its_pipes(tmp_path, kind, stubborn):
    server = peer(tmp_path, grandchild=kind, stubborn=stubborn)
    process = subprocess.Popen(server.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    grandchild = server.wait_event("grandchild")[0]["pid"]
    process.stdin.close()
    assert process.wait(10) == 0
    assert server.alive() == [grandchild]
    os.set_blocking(process.stdout.fileno(), False)
    assert process.stdout.read() is None  # no end of file: somebody holds the other end
    assert (os.getsid(grandchild) == os.getsid(0)) == (kind == "fork")
    os.kill(grandchild, signal.SIGTERM)
    if stubborn:
        with pytest.raises(AssertionError):
            server.wait_ended(timeout=0.1)
        os.kill(grandchild, signal.SIGKILL)
    server.wait_ended()
    process.stdout.close()


@pytest.mark.parametrize("orphan", [False, True])
def test_a_shell_between(tmp_path, orphan):
    server = peer(tmp_path)
    command = server.orphaned_by_sh if orphan else server.through_sh
    with RawPeer(command) as raw:
        assert said(call(raw, "echo", text="through")) == "through"
        started = server.events("started")[0]
        assert started["pid"] != raw._process.pid
        if orphan:
            assert raw._process.wait(10) == 0
            assert server.alive() == server.pids()
        raw._process.stdin.close()
    server.wait_ended()


def test_ends(tmp_path):
    done = lines_of(peer(tmp_path), ("silent", {}), ("die", {"code": 9, "stderr": "why", "answer": True}))
    assert (done.returncode, done.stderr) == (9, b"why")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [2]
    assert lines_of(peer(tmp_path), ("kill", {"name": "SIGABRT"})).returncode == -signal.SIGABRT


def test_deaf_ones(talk):
    raw, server = talk()
    assert said(call(raw, "stop_reading", seconds=0.05)) == "deaf now"
    assert said(call(raw, "echo", text="back")) == "back"
    call(raw, "stop_reading")
    raw.begin("ping")
    with pytest.raises(AssertionError):
        server.wait_for("ping", timeout=0.1)
    _, server = talk(deaf=True)
    server.wait_event("started")
    assert server.received() == []


def test_closing_stdout(talk):
    raw, server = talk()
    assert said(call(raw, "close_stdout")) == "the last word"
    with pytest.raises(AssertionError, match="the server ended"):
        raw.receive()
    assert server.alive() == server.pids()


# --- time


def test_answers_in_another_order(talk):
    raw, server = talk()
    slow = raw.begin("tools/call", {"name": "sleep", "arguments": {"seconds": 0.05}})
    many = [raw.begin("tools/call", {"name": "jumbled", "arguments": {"text": str(n)}}) for n in range(30)]
    order = [raw.receive()["id"] for _ in range(31)]
    assert sorted(order) == sorted([slow, *many])
    assert order != [slow, *many]
    assert server.wait_event("answered")[0]["request_id"] == slow


@pytest.mark.parametrize("heed", [True, False])
def test_late_answers_after_a_cancel(talk, heed):
    raw, server = talk()
    late = raw.begin("tools/call", {"name": "sleep", "arguments": {"seconds": 0.05, "heed": heed}})
    raw.notify("notifications/cancelled", {"requestId": late})
    assert server.wait_event("stopped" if heed else "answered")[0]["request_id"] == late


def test_a_busy_server_serves_nobody(talk):
    raw, _ = talk()
    raw.begin("tools/call", {"name": "busy", "arguments": {"seconds": 0.2}})
    ping = raw.begin("ping")
    assert raw.receive()["id"] == ping - 1
    assert raw.receive()["id"] == ping


# --- bytes


def test_noise(tmp_path):
    kinds = ["banner", "log", "blank", "invalid_utf8", "scalar", "object", "half", "nul", "crlf", "deep", "nan"]
    done = lines_of(peer(tmp_path), ("noise", {"kinds": kinds}), ("glued", {}))
    lines = done.stdout.split(b"\n")
    assert lines[0] == b"*** Welcome to the server ***"
    assert b"\xff\xfe" in done.stdout
    assert b"INFO listening\n" in done.stdout
    assert b"\r\n" in done.stdout
    assert json.loads(lines[-3])["id"] == 1
    assert lines[-2].startswith(b'DEBUG: answering {"jsonrpc"')


@pytest.mark.parametrize(("newline", "ends"), [(True, 3_276), (False, 0)])
def test_stderr(tmp_path, newline, ends):
    done = lines_of(peer(tmp_path), ("write_stderr", {"size": 262_144, "newline": newline}))
    assert len(done.stderr) == 262_144
    assert done.stderr.count(b"\n") == ends
    assert b"written" in done.stdout


def test_large_texts_both_ways(talk):
    raw, _ = talk()
    assert len(said(call(raw, "large", size=3_000_000))) == 3_000_000
    assert said(call(raw, "length", text="x" * 3_000_000)) == "3000000"
    assert said(call(raw, "in_pieces", size=500)) == "x" * 500


def test_raw_bytes_and_the_environment(tmp_path):
    done = lines_of(peer(tmp_path), ("raw", {"data": "\xff$ID\n"}), ("environment", {}), env={"K": "v"}, cwd="/")
    assert done.stdout.startswith(b"\xff1\n")
    shown = json.loads(json.loads(done.stdout.splitlines()[-1])["result"]["content"][0]["text"])
    assert (shown["env"]["K"], shown["cwd"]) == ("v", "/")


# --- envelopes


def answered(done: subprocess.CompletedProcess[bytes]) -> List[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_ids(tmp_path):
    kinds = ["unknown", "null", "string", "float", "bool", "missing", "error", "same", "same"]
    messages = answered(lines_of(peer(tmp_path), ("answers", {"ids": kinds})))
    assert [message.get("id", "missing") for message in messages] == [987_654, None, "1", 1.5, True, "missing", 1, 1, 1]
    assert "error" in messages[6]


def test_batches_and_odd_results(tmp_path):
    first, second, third, fourth, fifth = answered(
        lines_of(
            peer(tmp_path),
            ("batch", {}),
            ("batch", {"kinds": ["junk", "empty", "ping", "answer"]}),
            ("error", {"code": -5, "data": [1]}),
            ("outcome", {"result": 1, "error": None}),
            ("result_type", {"value": "poem"}),
        )
    )
    assert [message.get("id") for message in first] == [None, 1]
    assert second[:2] == [17, []]
    assert third["error"] == {"code": -5, "message": "no", "data": [1]}
    assert fourth == {"jsonrpc": "2.0", "id": 4, "result": 1, "error": None}
    assert fifth["result"]["resultType"] == "poem"


# --- unasked


def test_floods(tmp_path):
    assert len(answered(lines_of(peer(tmp_path), ("flood", {"count": 10_000})))) == 10_001
    assert len(answered(lines_of(peer(tmp_path), ("notify", {"method": "odd/thing", "count": 3})))) == 4


def test_progress(talk):
    raw, server = talk()
    params = {"_meta": {"progressToken": 5}}
    raw.request("tools/call", {"name": "flood", "arguments": {"count": 3, "progress": True}, **params})
    assert [message["params"]["progress"] for message in raw.heard] == [1, 2, 3]
    raw.request("tools/call", {"name": "late_progress", **params})
    raw.wait_for("notifications/progress")
    endless = raw.begin("tools/call", {"name": "endless_progress", "arguments": {"every": 0.001}, **params})
    for _ in range(3):
        raw.wait_for("notifications/progress")
    raw.notify("notifications/cancelled", {"requestId": endless})
    assert server.wait_event("stopped")[0]["request_id"] == endless


def test_changes_reach_sessions_and_subscriptions(talk):
    raw, _ = talk()
    raw.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert raw.wait_for("notifications/subscriptions/acknowledged")["params"]["notifications"]
    raw.initialize("2025-11-25")
    raw.heard.clear()
    call(raw, "changed", count=2, tool="brand_new")
    call(raw, "updated", uri="a:b")
    methods = [message["method"].rsplit("/", 2)[-1] for message in raw.heard]
    assert methods == ["list_changed"] * 4 + ["updated"] * 2
    assert "brand_new" in [tool["name"] for tool in raw.request("tools/list")["result"]["tools"]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("listen_to_less", ["notifications/subscriptions/acknowledged"]),
        ("listen_and_end", ["notifications/subscriptions/acknowledged", None]),
        ("listen_too_early", ["notifications/tools/list_changed", "notifications/subscriptions/acknowledged"]),
        ("silent_method", []),
    ],
)
def test_odd_subscriptions(talk, name, expected):
    raw, _ = talk(handlers={"subscriptions/listen": name})
    raw.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert [raw.receive().get("method") for _ in expected] == expected
    assert raw.request("ping")["result"] == {}


# --- questions


def test_questions_whose_ids_clash_with_ours(talk):
    raw, _ = talk()
    asking = raw.begin("tools/call", {"name": "ask", "arguments": {"method": "roots/list", "times": 3}})
    for expected in (asking, "%d-2" % asking, "%d-1" % asking):
        question = raw.receive()
        assert (question["id"], question["method"]) == (expected, "roots/list")
        raw.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": str(expected)}})
    assert json.loads(said(raw.receive()))["error"]["message"] == "%d-1" % asking


def test_questions_nobody_waits_for(talk):
    raw, server = talk()
    assert said(call(raw, "ask_without_waiting", method="odd/method")) == "asked"
    raw.send({"jsonrpc": "2.0", "id": raw.heard[0]["id"], "result": {"late": True}})
    assert server.wait_event("reply")[0]["data"]["result"] == {"late": True}
    call(raw, "withdraw", method="roots/list")
    assert raw.heard[-1]["params"]["requestId"] == raw.heard[-2]["id"]


def test_a_url_first(talk):
    raw, _ = talk()
    refused = call(raw, "url_required", url="https://example.com/sign")["error"]
    assert refused["code"] == -32042
    complete = raw.wait_for("notifications/elicitation/complete")["params"]
    assert complete["elicitationId"] == refused["data"]["elicitations"][0]["elicitationId"]
    assert said(call(raw, "url_required", url="https://example.com/sign")) == "done"


@pytest.mark.parametrize("state", ["plain", '\x00 \u2028\ud83d \u00e9"\\', None])
def test_rounds(talk, state):
    raw, _ = talk()
    arguments = {"count": 2, "state": state, "questions": {"q": {"method": "roots/list"}}}
    params = {"name": "rounds", "arguments": arguments}
    for _ in range(2):
        result = raw.modern("tools/call", params)["result"]
        assert result["resultType"] == "input_required"
        assert ("requestState" in result) == (state is not None)
        params = {"name": "rounds", "arguments": arguments, "inputResponses": {"q": {"roots": []}}}
        if state is not None:
            params["requestState"] = result["requestState"]
    assert json.loads(said(raw.modern("tools/call", params))) == {"q": {"roots": []}}
    if state is not None:  # it is good for one use
        assert raw.modern("tools/call", params)["error"]["code"] == -32602


def test_a_state_for_another_call_is_refused(talk):
    raw, _ = talk()
    first = raw.modern("tools/call", {"name": "rounds", "arguments": {"count": None}})["result"]
    other = {"name": "rounds", "arguments": {"count": 5}, "requestState": first["requestState"]}
    assert raw.modern("tools/call", other)["error"]["code"] == -32602


# --- listings


def test_listings(talk):
    raw, _ = talk(
        handlers={
            "tools/list": "three_pages",
            "prompts/list": "empty_cursor",
            "resources/list": "ten_thousand",
            "resources/templates/list": "page_two_hangs",
        }
    )

    def pages(method: str, key: str) -> List[List[str]]:
        result = raw.request(method)["result"]
        found = [result]
        while "nextCursor" in result:
            result = raw.request(method, {"cursor": result["nextCursor"]})["result"]
            found.append(result)
        return [[item["name"] for item in page[key]] for page in found]

    assert pages("tools/list", "tools") == [["item-0", "item-1"], ["item-2", "item-3"], ["item-4", "item-5"]]
    assert pages("prompts/list", "prompts") == [["item-0"], ["item-1"]]
    assert sum(map(len, pages("resources/list", "resources"))) == 10_000
    assert raw.request("resources/templates/list")["result"]["nextCursor"] == "1"
    raw.begin("resources/templates/list", {"cursor": "1"})
    assert raw.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("name", "cursors"),
    [("repeated_cursor", ["same", "same"]), ("endless_pages", ["1", "2"]), ("null_cursor", [None, None])],
)
def test_listings_that_do_not_end(talk, name, cursors):
    raw, _ = talk(handlers={"tools/list": name})
    first = raw.request("tools/list")["result"]["nextCursor"]
    assert [first, raw.request("tools/list", {"cursor": first})["result"]["nextCursor"]] == cursors


def test_an_unknown_tool_and_an_unknown_method(talk):
    raw, _ = talk()
    assert call(raw, "no_such")["error"]["code"] == -32602
    assert raw.request("no/such")["error"]["code"] == -32601
