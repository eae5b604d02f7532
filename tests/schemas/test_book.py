"""The checker must let right messages pass and refuse wrong ones, in every revision."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from tests.schemas.book import MODERN, REVISIONS, SchemaBook, SchemaViolation

LEGACY = REVISIONS[:-1]
INFO = {"name": "c", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def check(revision: Optional[str], message: Any, answering: Optional[str] = None) -> None:
    SchemaBook().validate_client_message(revision, message, answering)


def request(method: str, params: Optional[Dict[str, Any]] = None, **more: Any) -> Dict[str, Any]:
    message: Dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, **more}
    if params is not None:
        message["params"] = params
    return message


def notification(method: str, params: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    message = request(method, params)
    del message["id"]
    return message


def result(value: Any) -> Dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "s1", "result": value}


def initialize(revision: Any) -> Dict[str, Any]:
    return request("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": INFO})


def call(revision: str, **params: Any) -> Dict[str, Any]:
    if revision == MODERN:
        params["_meta"] = META
    return request("tools/call", {"name": "add", "arguments": {"a": 1}, **params})


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_passes(revision: str) -> None:
    check(revision, call(revision))


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_error_answer_passes(revision: str) -> None:
    check(revision, {"jsonrpc": "2.0", "id": 3, "error": {"code": -32601, "message": "no"}})


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_cancellation_passes(revision: str) -> None:
    check(revision, notification("notifications/cancelled", {"requestId": 1, "reason": "late"}))


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("known", [False, True])
def test_initialize_is_held_to_what_it_asks_for(revision: str, known: bool) -> None:
    check("2024-11-05" if known else None, initialize(revision))


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        notification("notifications/roots/list_changed"),
        request("ping"),
        request("tools/list"),
        request("tools/list", {"cursor": "x", "_meta": {"progressToken": 1}}),
        request("resources/subscribe", {"uri": "a:b"}),
        request("logging/setLevel", {"level": "debug"}),
        request(
            "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
        ),
    ],
    ids=lambda message: message["method"],
)
def test_legacy_messages_pass(revision: str, message: Dict[str, Any]) -> None:
    check(revision, message)


@pytest.mark.parametrize(
    "message",
    [
        request("server/discover", {"_meta": META}),
        request("tools/list", {"_meta": META, "cursor": "x"}),
        request("subscriptions/listen", {"_meta": META, "notifications": {"toolsListChanged": True}}),
        call(MODERN, requestState="s", inputResponses={"q": {"action": "accept", "content": {"name": "Ada"}}}),
        call(MODERN, inputResponses={"q": {"roots": [{"uri": "file:///x"}]}}),
    ],
    ids=lambda message: message["method"],
)
@pytest.mark.parametrize("known", [False, True])
def test_modern_messages_pass(message: Dict[str, Any], known: bool) -> None:
    check(MODERN if known else None, message)


@pytest.mark.parametrize("revision", LEGACY)
def test_answers_pass(revision: str) -> None:
    text = {"type": "text", "text": "hi"}
    check(revision, result({}), "ping")
    check(revision, result({"roots": [{"uri": "file:///x", "name": "x"}]}), "roots/list")
    check(revision, result({"model": "m", "role": "assistant", "content": text}), "sampling/createMessage")
    check(revision, result({"anything": 1}))


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_an_elicitation_answer_passes(revision: str) -> None:
    check(revision, result({"action": "accept", "content": {"name": "Ada"}}), "elicitation/create")


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_an_elicitation_may_be_answered_with_a_fraction(revision: str) -> None:
    """The JSON schemas forget what the ``schema.ts`` that they are made from says."""
    check(revision, result({"action": "accept", "content": {"number": 3.14}}), "elicitation/create")
    with pytest.raises(SchemaViolation):
        check(revision, result({"action": "accept", "content": {"number": None}}), "elicitation/create")


def test_a_batch_passes_where_there_are_batches() -> None:
    batch = [request("ping"), notification("notifications/initialized"), result({})]
    check("2025-03-26", batch)
    for revision in REVISIONS:
        if revision != "2025-03-26":
            with pytest.raises(SchemaViolation, match="only 2025-03-26 has them"):
                check(revision, batch)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ([], "empty batch"),
        ([initialize("2025-03-26")], "must not be part of a batch"),
        ([request("ping"), 7], "item 1 of the batch"),
        ([request("nonsense")], "no client request 'nonsense'"),
    ],
)
def test_a_wrong_batch_is_refused(batch: Any, says: str) -> None:
    with pytest.raises(SchemaViolation, match=says):
        check("2025-03-26", batch)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"id": None}, r"at \.id: None"),
        ({"id": 1.5}, r"at \.id: 1\.5"),
        ({"jsonrpc": "1.0"}, r"at \.jsonrpc"),
        ({"method": 7}, r"at \.method"),
        ({"params": [1]}, r"at \.params"),
        ({"params": {"name": 5, "_meta": META}}, r"tools/call breaks CallToolRequest of .* at \.params\.name"),
        ({"timeout": 3}, r"foreign members \['timeout'\]"),
        ({"result": {}}, r"foreign members \['result'\]"),
        ({"method": "tools/calls"}, "has no client request 'tools/calls'"),
        ({"method": "sampling/createMessage"}, "has no client request"),
    ],
)
def test_a_wrong_request_is_refused(revision: str, broken: Dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaViolation, match=says):
        check(revision, {**call(revision), **broken})


@pytest.mark.parametrize("revision", REVISIONS)
def test_other_wrong_messages_are_refused(revision: str) -> None:
    for message in (
        7,
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "result": 5},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "no"}},
        notification("notifications/cancelled", {"requestId": {}}),
        notification("tools/call", {"name": "add", "_meta": META}),
        notification("notifications/message", {"level": "info", "data": 1}),
    ):
        with pytest.raises(SchemaViolation):
            check(revision, message)


@pytest.mark.parametrize(
    ("revision", "message", "answering"),
    [
        ("2025-11-25", {"roots": [{"name": "no uri"}]}, "roots/list"),
        ("2025-11-25", {"model": "m", "role": "nobody", "content": {}}, "sampling/createMessage"),
        ("2025-11-25", {"action": "perhaps"}, "elicitation/create"),
        ("2025-03-26", {"action": "accept"}, "elicitation/create"),
        (MODERN, {}, None),
    ],
)
def test_a_wrong_answer_is_refused(revision: str, message: Any, answering: Optional[str]) -> None:
    with pytest.raises(SchemaViolation):
        check(revision, result(message), answering)


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        (MODERN, initialize(MODERN)),
        (MODERN, request("tools/list")),
        (MODERN, request("tools/list", {})),
        (MODERN, request("ping", {"_meta": META})),
        (MODERN, request("logging/setLevel", {"level": "debug", "_meta": META})),
        (MODERN, notification("notifications/initialized")),
        (MODERN, call(MODERN, requestState=7)),
        (MODERN, call(MODERN, inputResponses={"q": {"action": "perhaps"}})),
        (MODERN, request("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}})),
        ("2025-11-25", request("server/discover", {"_meta": META})),
        ("2025-11-25", initialize("1999-01-01")),
        ("2025-11-25", initialize(None)),
        (None, request("tools/list")),
        ("1999-01-01", request("tools/list")),
    ],
)
def test_what_belongs_to_another_revision_is_refused(revision: Optional[str], message: Any) -> None:
    with pytest.raises(SchemaViolation):
        check(revision, message)


def test_extension_methods_are_held_to_the_envelope() -> None:
    book = SchemaBook(extension_methods=["x/y"])
    book.validate_client_message("2025-11-25", request("x/y"))
    book.validate_client_message(MODERN, request("x/y", {"_meta": META}))
    for message in (request("x/y"), request("x/y", {"_meta": META}, more=1)):
        with pytest.raises(SchemaViolation):
            book.validate_client_message(MODERN, message)
