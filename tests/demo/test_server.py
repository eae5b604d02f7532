"""The demo server, spoken to with bare lines: both eras, and every message as the official schemas want it."""

from __future__ import annotations

import base64
import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from jsonschema import Draft202012Validator

from tests.interop.raw import MODERN_META, Message, RawPeer

COMMAND = [sys.executable, "-m", "mcpsync.demo"]
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SCHEMAS = Path(__file__).parent.parent / "schemas"


@functools.cache
def validator(revision: str, definition: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / revision / "schema.json").read_text(encoding="utf-8"))
    defs = "$defs" if "$defs" in schema else "definitions"
    return Draft202012Validator({"$ref": "#/%s/%s" % (defs, definition), defs: schema[defs]})


def hold(revision: str, definition: str, message: Any) -> None:
    """Fail unless the message is what the official schema of that revision says."""
    errors = list(validator(revision, definition).iter_errors(message))
    assert not errors, "%s %s: %s" % (revision, definition, errors[:2])


ANSWERS = {
    "elicitation/create": lambda params: {"action": "accept", "content": {"name": "Ada", "polite": False}},
    "sampling/createMessage": lambda params: {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "it said " + params["messages"][0]["content"]["text"]},
    },
    "roots/list": lambda params: {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]},
}


class Session:
    """One demo server and one revision: requests in the shape of its era."""

    def __init__(self, peer: RawPeer, revision: str) -> None:
        self.peer = peer
        self.revision = revision
        self.modern = revision == MODERN
        if not self.modern:
            result = peer.initialize(revision)
            assert result["protocolVersion"] == revision
            hold(revision, "InitializeResult", result)

    def request(self, method: str, **params: Any) -> Message:
        return (self.peer.modern if self.modern else self.peer.request)(method, params)

    def result(self, definition: str, method: str, **params: Any) -> Message:
        answer = self.request(method, **params)
        assert "result" in answer, answer
        hold(self.revision, definition, answer["result"])
        return dict(answer["result"])

    def call(self, name: str, **arguments: Any) -> Message:
        return self.result("CallToolResult", "tools/call", name=name, arguments=arguments)

    def ask(self, name: str, **arguments: Any) -> Message:
        """Call a tool that has a question, and answer it the way the era wants."""
        if not self.modern:
            return self.call(name, **arguments)
        first = self.result("InputRequiredResult", "tools/call", name=name, arguments=arguments)
        assert first["resultType"] == "input_required"
        responses = {
            key: ANSWERS[question["method"]](question["params"]) for key, question in first["inputRequests"].items()
        }
        more = {"inputResponses": responses, "requestState": first["requestState"]}
        return self.result("CallToolResult", "tools/call", name=name, arguments=arguments, **more)

    def text(self, uri: str) -> str:
        return str(self.result("ReadResourceResult", "resources/read", uri=uri)["contents"][0]["text"])

    def begin(self, method: str, **params: Any) -> int:
        return self.peer.begin(method, {**params, "_meta": MODERN_META} if self.modern else params)


@pytest.fixture
def peer():
    with RawPeer(COMMAND, ANSWERS) as peer:
        yield peer


@pytest.fixture(params=[*LEGACY, MODERN])
def session(request, peer):
    return Session(peer, request.param)


@pytest.fixture(params=[LEGACY[-1], MODERN])
def each_era(request, peer):
    return Session(peer, request.param)


def said(result: Message) -> str:
    return str(result["content"][0]["text"])


def listed(session: Session, method: str, definition: str, key: str) -> List[Message]:
    """All pages."""
    found: List[Message] = []
    cursor: Dict[str, str] = {}
    while True:
        page = session.result(definition, method, **cursor)
        assert len(page[key]) <= 3
        found += page[key]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


# --- opening


def test_an_unknown_legacy_revision_gets_the_latest(peer):
    assert peer.initialize("1999-01-01")["protocolVersion"] == "2025-11-25"


def test_discover(peer):
    result = Session(peer, MODERN).result("DiscoverResult", "server/discover")
    assert result["supportedVersions"] == [MODERN]
    assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (3_600_000, "public", "complete")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcpsync-demo"


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_a_request_without_its_metadata_is_refused(peer, missing):
    meta = {key: value for key, value in MODERN_META.items() if not key.endswith(missing)}
    for _ in range(2):  # before and after a session was opened
        error = peer.request("tools/list", {"_meta": meta})["error"]
        assert error["code"] == -32602
        assert missing in error["message"]
        peer.initialize("2025-06-18")


def test_a_request_before_any_opening_is_refused(peer):
    assert peer.request("tools/list")["error"]["code"] == -32602
    assert peer.request("ping")["result"] == {}


def test_an_unknown_modern_revision_is_refused_with_those_there_are(peer):
    answer = peer.modern("server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}})
    hold(MODERN, "UnsupportedProtocolVersionError", answer)
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": [MODERN], "requested": "2030-01-01"}


def test_both_eras_are_served_side_by_side(peer):
    legacy = Session(peer, "2025-06-18")
    modern = Session(peer, MODERN)
    assert "resultType" not in legacy.call("echo", text="a")
    assert modern.call("echo", text="b")["resultType"] == "complete"
    assert said(legacy.call("echo", text="c")) == "c"


def test_methods_of_the_other_era_are_unknown(peer):
    modern, legacy = Session(peer, MODERN), Session(peer, "2025-11-25")
    for method in ("ping", "logging/setLevel", "resources/subscribe"):
        assert modern.request(method)["error"]["code"] == -32601
    for method in ("server/discover", "subscriptions/listen"):
        assert legacy.request(method)["error"]["code"] == -32601


# --- tools


def test_tools(session):
    tools = listed(session, "tools/list", "ListToolsResult", "tools")
    names = [tool["name"] for tool in tools]
    assert names == ["add", "echo", "count", "slow", "greet", "ask_model", "roots", "fail", "toggle", "touch"]
    assert session.call("add", a=1, b=2.5)["structuredContent"] == {"sum": 3.5}
    assert said(session.call("echo", text="ä\u2028\ud83d")) == "ä\u2028\ud83d"
    failed = session.call("fail")
    assert failed["isError"] is True
    assert said(failed) == "this tool always fails"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"a": 1}, "'b' is missing"),
        ({"a": 1, "b": "2"}, "'b' must be of type number"),
        ({"a": 1, "b": True}, "'b' must be of type number"),
        ({"a": 1, "b": 2, "c": 3}, "no argument 'c'"),
    ],
)
def test_wrong_arguments_are_for_the_model_to_read(each_era, arguments, problem):
    failed = each_era.call("add", **arguments)
    assert failed["isError"] is True
    assert problem in said(failed)


def test_unknown_tools_and_arguments_that_are_none(each_era):
    assert each_era.request("tools/call", name="no such")["error"]["code"] == -32602
    assert each_era.request("tools/call", name="bonus")["error"]["code"] == -32602
    assert each_era.request("tools/call", name="add", arguments=[1])["result"]["isError"] is True


def test_what_goes_wrong_in_a_tool_is_answered(each_era):
    error = each_era.request("tools/call", name="slow", arguments={"seconds": 1e300})["error"]
    assert error["code"] == -32603
    assert "OverflowError" in error["message"]


def test_progress(session):
    params = {"name": "count", "arguments": {"n": 3, "delay": 0}, "_meta": {"progressToken": "t"}}
    result = session.request("tools/call", **params)["result"]
    assert said(result) == "counted to 3"
    heard = [message for message in session.peer.heard if message["method"] == "notifications/progress"]
    assert [message["params"]["progress"] for message in heard] == [1, 2, 3]
    assert heard[0]["params"] == {
        "progressToken": "t", "progress": 1, "total": 3, "message": "counted to 1 of 3"
    }  # fmt: skip
    for message in heard:
        hold(session.revision, "ProgressNotification", message)


def test_no_progress_unless_asked_for(each_era):
    each_era.call("count", n=2, delay=0)
    assert not [message for message in each_era.peer.heard if message["method"] == "notifications/progress"]


def test_calls_run_side_by_side(each_era):
    slow = each_era.begin("tools/call", name="slow", arguments={"seconds": 30})
    assert said(each_era.call("echo", text="meanwhile")) == "meanwhile"
    each_era.peer.notify("notifications/cancelled", {"requestId": slow})


def test_a_cancelled_call_stops_and_says_so_but_is_not_answered(session):
    if session.modern:
        session.begin("subscriptions/listen", notifications={"resourceSubscriptions": ["demo://log"]})
        session.peer.wait_for("notifications/subscriptions/acknowledged")
    else:
        assert session.result("EmptyResult", "resources/subscribe", uri="demo://log") == {}
    slow = session.begin("tools/call", name="slow", arguments={"seconds": 60})
    session.peer.notify("notifications/cancelled", {"requestId": slow, "reason": "no longer needed"})
    updated = session.peer.wait_for("notifications/resources/updated")
    hold(session.revision, "ResourceUpdatedNotification", updated)
    assert session.text("demo://log") == "cancelled request %d" % slow
    logs = [message for message in session.peer.heard if message["method"] == "notifications/message"]
    assert [message["params"]["data"] for message in logs] == (
        [] if session.modern else ["cancelled request %d" % slow]
    )
    assert not [message for message in session.peer.heard if message.get("id") == slow]


def test_cancelling_what_is_not_there_does_nothing(each_era):
    for params in ({"requestId": 99}, {"requestId": {}}, {}, []):
        each_era.peer.notify("notifications/cancelled", params)
    assert said(each_era.call("echo", text="still here")) == "still here"


def test_the_tools_change(each_era):
    peer = each_era.peer
    if each_era.modern:
        stream = each_era.begin("subscriptions/listen", notifications={"toolsListChanged": True})
        peer.wait_for("notifications/subscriptions/acknowledged")
    assert said(each_era.call("toggle")) == "the tool 'bonus' is there"
    changed = [message for message in peer.heard if message["method"] == "notifications/tools/list_changed"]
    assert len(changed) == 1
    assert changed[0]["params"] == ({"_meta": {SUBSCRIPTION: stream}} if each_era.modern else {})
    assert "bonus" in [tool["name"] for tool in listed(each_era, "tools/list", "ListToolsResult", "tools")]
    assert said(each_era.call("bonus")) == "a bonus"
    assert said(each_era.call("toggle")) == "the tool 'bonus' is gone"


# --- questions to the client


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
def test_elicitation(peer, revision):
    assert said(Session(peer, revision).ask("greet")) == "Hi, Ada!"


def test_sampling_and_roots(session):
    assert said(session.ask("ask_model", question="why?")) == "The model says: it said why?"
    assert said(session.ask("roots")) == "file:///a\nfile:///b"


def test_the_questions_are_what_the_schema_says(peer):
    session = Session(peer, "2025-11-25")
    session.call("greet")
    session.call("ask_model", question="why?")
    session.call("roots")
    asked = [message for message in peer.heard if "id" in message]
    assert [message["id"] for message in asked] == [1, 2, 3]
    for message, definition in zip(asked, ["ElicitRequest", "CreateMessageRequest", "ListRootsRequest"]):
        hold("2025-11-25", definition, message)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_name_that_is_not_given(action):
    with RawPeer(COMMAND, {"elicitation/create": lambda params: {"action": action}}) as peer:
        assert said(Session(peer, "2025-11-25").call("greet")) == "No name, no greeting."
        declined = {"inputResponses": {"name": {"action": action}}}
        answer = peer.modern("tools/call", {"name": "greet", "arguments": {}, **declined})
        assert said(answer["result"]) == "No name, no greeting."


def test_a_missing_answer_is_asked_for_again(peer):
    session = Session(peer, MODERN)
    first = session.request("tools/call", name="greet", arguments={})["result"]
    again = session.request(
        "tools/call", name="greet", arguments={}, requestState=first["requestState"], inputResponses={}
    )["result"]
    assert again == first


def test_a_state_that_was_altered_is_refused(peer):
    session = Session(peer, MODERN)
    first = session.request("tools/call", name="greet", arguments={})["result"]
    answer = {"inputResponses": {"name": {"action": "cancel"}}, "requestState": first["requestState"] + " "}
    assert session.request("tools/call", name="greet", arguments={}, **answer)["error"]["code"] == -32602
    # It belongs to one tool: a client that mixes up two calls is found out.
    assert session.request("tools/call", name="ask_model", **answer)["error"]["code"] == -32602


@pytest.mark.parametrize("tool", ["greet", "roots"])
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}])
def test_what_the_client_does_not_offer_is_not_asked(peer, tool, capabilities):
    client = {"name": "raw", "version": "1"}
    opened = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
    peer.request("initialize", opened)
    failed = peer.request("tools/call", {"name": tool})["result"]
    assert failed["isError"] is True
    assert "needs a client that offers" in said(failed)
    meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}
    answer = peer.modern("tools/call", {"name": tool, "_meta": meta})
    hold(MODERN, "MissingRequiredClientCapabilityError", answer)
    assert answer["error"]["code"] == -32021


def test_a_question_that_the_client_refuses(peer):
    session = Session(refusing(peer), "2025-11-25")
    failed = session.call("roots")
    assert failed["isError"] is True
    assert "did not answer" in said(failed)


def refusing(peer: RawPeer) -> RawPeer:
    """The same peer, but each question of the server's is answered with an error."""
    take = peer.take

    def refuse(message: Message) -> None:
        if "id" in message:
            refusal = {"code": -32603, "message": "no"}
            peer.send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
        else:
            take(message)

    peer.take = refuse  # type: ignore[method-assign]
    return peer


def test_a_cancelled_call_takes_back_its_question():
    with RawPeer(COMMAND) as peer:
        session = Session(peer, "2025-11-25")
        asking = session.begin("tools/call", name="roots", arguments={})
        question = peer.wait_for("roots/list")["id"]
        peer.notify("notifications/cancelled", {"requestId": asking})
        assert peer.wait_for("notifications/cancelled")["params"]["requestId"] == question
        peer.send({"jsonrpc": "2.0", "id": question, "result": {"roots": []}})  # too late, and no harm
        assert said(session.call("echo", text="still here")) == "still here"


# --- resources, prompts, completion, logging


def test_resources(session):
    resources = listed(session, "resources/list", "ListResourcesResult", "resources")
    assert [resource["uri"] for resource in resources] == [
        "demo://hello", "demo://dot", "demo://log", "demo://counter"
    ]  # fmt: skip
    assert session.text("demo://hello").startswith("Hello")
    dot = session.result("ReadResourceResult", "resources/read", uri="demo://dot")["contents"][0]
    assert base64.b64decode(dot["blob"]).startswith(b"\x89PNG")
    templates = listed(session, "resources/templates/list", "ListResourceTemplatesResult", "resourceTemplates")
    assert [template["uriTemplate"] for template in templates] == ["demo://greeting/{language}"]
    assert session.text("demo://greeting/german") == "Guten Tag"
    missing = session.request("resources/read", uri="demo://nothing")["error"]
    assert missing["code"] == (-32602 if session.modern else -32002)
    assert missing["data"] == {"uri": "demo://nothing"}


def test_reading_is_not_to_be_cached_and_lists_are(peer):
    session = Session(peer, MODERN)
    read = session.result("ReadResourceResult", "resources/read", uri="demo://log")
    tools = session.result("ListToolsResult", "tools/list")
    assert (read["ttlMs"], read["cacheScope"]) == (0, "private")
    assert (tools["ttlMs"], tools["cacheScope"]) == (60_000, "public")


def test_a_subscription_of_the_legacy_era(peer):
    session = Session(peer, "2025-11-25")
    session.call("touch")
    session.result("EmptyResult", "resources/subscribe", uri="demo://counter")
    session.call("touch")
    session.result("EmptyResult", "resources/unsubscribe", uri="demo://counter")
    session.call("touch")
    assert [message["params"] for message in peer.heard] == [{"uri": "demo://counter"}]
    assert session.text("demo://counter") == "3"
    assert session.request("resources/subscribe", uri="demo://nothing")["error"]["code"] == -32002


def test_subscriptions_of_the_modern_era(peer):
    session = Session(peer, MODERN)
    wanted = {"promptsListChanged": True, "resourceSubscriptions": ["demo://counter", "demo://nothing"]}
    first = session.begin("subscriptions/listen", notifications=wanted)
    acknowledged = peer.wait_for("notifications/subscriptions/acknowledged")
    hold(MODERN, "SubscriptionsAcknowledgedNotification", acknowledged)
    assert acknowledged["params"] == {
        "_meta": {SUBSCRIPTION: first}, "notifications": {"resourceSubscriptions": ["demo://counter"]}
    }  # fmt: skip
    second = session.begin("subscriptions/listen", notifications={"resourceSubscriptions": ["demo://counter"]})
    peer.wait_for("notifications/subscriptions/acknowledged")
    session.call("touch")
    peer.notify("notifications/cancelled", {"requestId": first})
    session.call("touch")
    session.call("toggle")  # nobody listens to that
    updates = [message for message in peer.heard if message["method"] != "notifications/subscriptions/acknowledged"]
    assert [update["params"]["_meta"][SUBSCRIPTION] for update in updates] == [first, second, second]
    for update in updates:
        hold(MODERN, "ResourceUpdatedNotification", update)
    assert session.request("subscriptions/listen")["error"]["code"] == -32602


def test_a_prompt_with_its_arguments(session):
    prompts = listed(session, "prompts/list", "ListPromptsResult", "prompts")
    assert [prompt["name"] for prompt in prompts] == ["story"]
    prompt = session.result(
        "GetPromptResult", "prompts/get", name="story", arguments={"hero": "Ada", "mood": "curious"}
    )
    assert prompt["messages"][0]["content"]["text"] == "Tell a curious story about Ada."
    assert session.request("prompts/get", name="story")["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("reference", "name", "typed", "values"),
    [
        ({"type": "ref/prompt", "name": "story"}, "mood", "c", ["calm", "careful", "cheerful", "curious"]),
        ({"type": "ref/prompt", "name": "story"}, "hero", "c", []),
        ({"type": "ref/resource", "uri": "demo://greeting/{language}"}, "language", "g", ["german", "greek"]),
    ],
)
def test_completion(session, reference, name, typed, values):
    argument = {"name": name, "value": typed}
    result = session.result("CompleteResult", "completion/complete", ref=reference, argument=argument)
    assert result["completion"] == {"values": values, "total": len(values), "hasMore": False}
    assert session.request("completion/complete", ref="story", argument=argument)["error"]["code"] == -32602


def test_logging_of_the_legacy_era(peer):
    session = Session(peer, "2025-11-25")
    session.call("add", a=1, b=1)
    assert peer.heard == []  # info, until the client says otherwise
    session.result("EmptyResult", "logging/setLevel", level="debug")
    session.call("add", a=1, b=1)
    hold("2025-11-25", "LoggingMessageNotification", peer.heard[0])
    assert peer.heard[0]["params"] == {"level": "debug", "logger": "demo", "data": "adding 1 and 1"}
    session.result("EmptyResult", "logging/setLevel", level="emergency")
    session.call("count", n=1, delay=0)
    assert len(peer.heard) == 1
    assert session.request("logging/setLevel", level="loud")["error"]["code"] == -32602


def test_logging_of_the_modern_era_is_for_one_request(peer):
    call = {"name": "add", "arguments": {"a": 1, "b": 1}}
    for level, lines in (("debug", 1), ("info", 0)):
        peer.heard.clear()
        peer.modern("tools/call", {**call, "_meta": {"io.modelcontextprotocol/logLevel": level}})
        assert len(peer.heard) == lines
    peer.modern("tools/call", call)
    assert peer.heard == []
    loud = peer.modern("tools/call", {**call, "_meta": {"io.modelcontextprotocol/logLevel": "loud"}})
    assert loud["error"]["code"] == -32602


@pytest.mark.parametrize("cursor", ["-3", "x", "9" * 50, "", 3, None])
def test_a_cursor_that_this_server_never_gave(each_era, cursor):
    assert each_era.request("tools/list", cursor=cursor)["error"]["code"] == -32602


def test_roots_that_changed_are_noted(each_era):
    each_era.peer.notify("notifications/roots/list_changed")
    assert each_era.text("demo://log") == "the client's roots changed"


# --- what is no request


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("text", -32600),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": 7}, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": []}, -32600),
    ],
)
def test_what_is_no_request_is_answered_with_an_error(peer, message, code):
    peer.send(message)
    assert peer.receive()["error"]["code"] == code
    assert peer.request("ping")["result"] == {}


def test_batches_exist_in_one_revision(peer):
    Session(peer, "2025-03-26")
    peer.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "ping"}])
    assert [peer.receive()["id"], peer.receive()["id"]] == ["a", "b"]


def test_answers_to_nothing_are_dropped(peer):
    for answer in ({"id": 1, "result": {}}, {"id": [], "result": {}}, {"result": {}}):
        peer.send({"jsonrpc": "2.0", **answer})
    Session(peer, "2025-11-25")
    peer.send({"jsonrpc": "2.0", "id": [], "result": {}})
    assert peer.request("ping")["result"] == {}


def run_with(stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(COMMAND, input=stdin, capture_output=True, timeout=60, check=False)


def test_a_line_that_is_no_json_and_blank_ones():
    done = run_with(b'{"a\n\n  \n\xff\n' + b"[" * 100_000 + b'\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32700, -32700, -32700, None]
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_end_of_input_ends_waiting_tools_and_the_process():
    opened = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}
    lines: List[Message] = [{"id": 1, "method": "initialize", "params": opened}]
    for request_id, name, arguments in [(2, "slow", {"seconds": 600}), (3, "roots", {}), (4, "echo", {"text": "x"})]:
        lines.append({"id": request_id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    done = run_with(b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {answer["id"] for answer in answers if "result" in answer} == {1, 4}
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_but_the_standard_library_is_loaded():
    script = (
        "import sys; sys.argv = ['mcpsync.demo']; import runpy; before = set(sys.modules);"
        "runpy.run_module('mcpsync.demo', run_name='__main__');"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('mcpsync') or name == 'asyncio'))"
    )
    done = subprocess.run([sys.executable, "-c", script], input=b"", capture_output=True, timeout=60, check=True)
    loaded = ["mcpsync", *("mcpsync.demo" + name for name in ("", ".call", ".offers", ".server", ".wire"))]
    assert done.stdout.decode().strip() == str(loaded)
