"""One session, message by message."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from mcpsync.core.era import LEGACY, MODERN, REVISIONS
from mcpsync.core.session import Answered, Asked, Notified, Oddity, Progressed, Session, Withdrawn
from mcpsync.errors import InvalidMessage, MethodNotFound, RpcError, UrlElicitationRequired

pytestmark = pytest.mark.usefixtures("codec")

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
LEGACY_REVISION = "2025-11-25"
MODERN_REVISION = "2026-07-28"


class Call:
    def __init__(self, method="tools/call"):
        self.method = method
        self.request_id = -1


def session(revision=LEGACY_REVISION, log_level=None, start=0):
    made = Session(itertools.count(start), {"name": "t", "version": "1"}, {"roots": {"listChanged": True}})
    made.adopt(REVISIONS.get(revision), log_level)
    return made


def opened(made, method="tools/call", progress=False):
    call = Call(method)
    made.request(call, method, {}, progress=progress)
    return call


def wire(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def only(events):
    (event,) = events
    return event


def received(made, **message):
    return only(made.receive(wire(message)))


# --- requests


def test_a_request_has_a_new_id_each_time():
    made = session(start=5)
    call = Call()
    for expected in (5, 6):
        data = made.request(call, "tools/call", {"name": "x"})
        assert json.loads(data) == {"jsonrpc": "2.0", "id": expected, "method": "tools/call", "params": {"name": "x"}}
        assert call.request_id == made.last_id == expected


@pytest.mark.parametrize("params", [{}, {"a": 1}])
@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("meta", [None, {}, {"k": [1], VERSION: "forged"}])
@pytest.mark.parametrize("level", [None, "debug"])
@pytest.mark.parametrize("own", [None, "warning"])
@pytest.mark.parametrize("revision", [None, LEGACY_REVISION, MODERN_REVISION])
def test_the_metadata_of_a_request(revision, own, level, meta, progress, params):
    made = session(revision, own)
    data = json.loads(made.request(Call(), "m", params, progress=progress, meta=meta, log_level=level))
    expected = dict(meta or {})
    if revision == MODERN_REVISION:
        expected.update({VERSION: revision, CLIENT: {"name": "t", "version": "1"}, CAPABILITIES: {"roots": {}}})
        if own:
            expected[LOG_LEVEL] = own
    if level:
        expected[LOG_LEVEL] = level
    if progress:
        expected["progressToken"] = data["id"]
    sent = data["params"]
    assert sent.pop("_meta", {}) == expected
    assert sent == params


@pytest.mark.parametrize("how", [{"params": {"a": math.nan}}, {"meta": {"a": object()}}, {"params": {"a": b""}}])
def test_parameters_without_a_json_form_open_no_request(how):
    made = session()
    with pytest.raises(ValueError, match="tools/call: the parameters have no JSON form: "):
        made.request(Call(), "tools/call", **{"params": {}, "progress": True, **how})
    assert made.in_flight() == []
    assert made._watched == {}


def test_a_progress_token_in_the_metadata_is_refused():
    """It could be the token of another call, which would get the progress then."""
    made = session()
    opened(made, progress=True)
    with pytest.raises(ValueError, match="progressToken"):
        made.request(Call(), "tools/call", {}, meta={"progressToken": 0})
    assert len(made.in_flight()) == 1


def test_any_method_name_travels_as_it_is():
    made = session()
    for method in ('quote"d', "back\\slash", "line\nend", "\u00e9", "\ud800", ""):
        data = made.request(Call(), method, {})
        assert json.loads(data)["method"] == method
        assert b"\n" not in data


def test_notifications_and_cancels():
    made = session()
    assert json.loads(made.notification("n")) == {"jsonrpc": "2.0", "method": "n"}
    assert json.loads(made.notification("n", {"a": 1}))["params"] == {"a": 1}
    with pytest.raises(ValueError, match="n: the parameters have no JSON form"):
        made.notification("n", {"a": math.inf})
    assert json.loads(made.cancel(3, "too \ud800 long")) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 3, "reason": "too \ud800 long"},
    }


# --- answers


def test_an_answer_completes_its_call_once():
    made = session()
    first, second = opened(made, progress=True), opened(made)
    assert received(made, id=0, result={"r": 1}) == Answered(first, {"r": 1}, None)
    late = received(made, id=0, result={"r": 2})
    assert late == Oddity("late answer", "to request 0, which is not in flight (any more)")
    assert made.in_flight() == [second]
    assert not made.retire(first)
    assert made.retire(second)
    assert not made.retire(second)
    assert made._watched == {}


def test_all_are_retired_at_once():
    made = session()
    calls = [opened(made, progress=bool(n % 2)) for n in range(4)]
    assert made.in_flight() == calls
    assert made.retire_all() == calls
    assert made.retire_all() == []
    assert made._watched == {}


def test_one_is_one_however_a_number_is_written():
    made = session()
    call = opened(made, progress=True)
    assert only(made.receive(b'{"method":"notifications/progress","params":{"progressToken":0.0}}')).call is call
    assert only(made.receive(b'{"id":0.0,"result":{}}')) == Answered(call, {}, None)
    assert only(made.receive(b'{"id":0e0,"result":{}}')).kind == "late answer"


@pytest.mark.parametrize(
    "named", ['"0"', "false", "true", "null", "0.5", "[0]", '{"a":0}', "1e999", "NaN", '"\\ud800"']
)
def test_an_id_that_is_none_of_ours_answers_nothing(named):
    made = session()
    call = opened(made, progress=True)
    for message in ('{"id":%s,"result":{}}', '{"method":"notifications/progress","params":{"progressToken":%s}}'):
        event = only(made.receive((message % named).encode()))
        assert isinstance(event, Oddity)
        assert event.detail.isprintable()
    assert made.in_flight() == [call]


def test_an_answer_without_an_id():
    made = session()
    opened(made)
    assert received(made, result={}).kind == "unknown answer"
    event = received(made, error={"code": -32700, "message": "parse " + "x" * 1_000})
    assert event.kind == "error without id"
    assert event.detail.startswith("the server could not read a message: parse xxx")
    assert len(event.detail) < 300


@pytest.mark.parametrize("body", [{}, {"result": None}, {"result": [1]}, {"error": "no"}, {"result": "x", "error": 1}])
def test_an_answer_that_is_none_fails_its_call(body):
    made = session()
    call = opened(made)
    event = received(made, id=0, **body)
    assert event.call is call
    assert event.result is None
    assert isinstance(event.failure, InvalidMessage)


@pytest.mark.parametrize(
    ("error", "kind", "code", "message", "data"),
    [
        ({"code": -32601, "message": "no"}, MethodNotFound, -32601, "no", None),
        ({"code": -32601.0, "message": "no"}, MethodNotFound, -32601, "no", None),
        ({"code": -32042, "message": "go", "data": {"e": 1}}, UrlElicitationRequired, -32042, "go", {"e": 1}),
        ({"code": 5, "message": ""}, RpcError, 5, "the server gave no message", None),
        ({"code": True, "message": ["x"]}, RpcError, -32603, "the server gave no message", None),
        ({"code": 0.5}, RpcError, -32603, "the server gave no message", None),
        ({}, RpcError, -32603, "the server gave no message", None),
    ],
)
def test_an_error_answer(error, kind, code, message, data):
    made = session()
    opened(made)
    failure = received(made, id=0, error=error, result=None).failure
    assert type(failure) is kind
    assert (failure.code, failure.message, failure.data) == (code, message, data)
    assert type(failure.code) is int


# --- progress


def test_progress_goes_to_its_call_while_that_is_in_flight():
    made = session()
    watched, other = opened(made, progress=True), opened(made)
    progress = {"progressToken": watched.request_id, "progress": 1}
    assert received(made, method="notifications/progress", params=progress) == Progressed(watched, progress)
    progress = {"progressToken": other.request_id, "progress": 1}
    assert received(made, method="notifications/progress", params=progress).kind == "progress"
    assert made.retire(watched)
    progress = {"progressToken": watched.request_id, "progress": 2}
    assert received(made, method="notifications/progress", params=progress).kind == "progress"
    assert received(made, method="notifications/progress").kind == "progress"


# --- requests of the server


@pytest.mark.parametrize("revision", [None, *LEGACY])
def test_a_request_of_the_server_is_answered_once(revision):
    made = session(revision)
    assert received(made, id="0", method="ping") == Asked("0", "ping", {})
    assert received(made, id=0, method="roots/list", params={"a": 1}) == Asked(0, "roots/list", {"a": 1})
    assert json.loads(made.answer("0", {"r": 1})) == {"jsonrpc": "2.0", "id": "0", "result": {"r": 1}}
    assert made.answer("0", {}) is None
    assert made.refuse("0", -1, "no") is None
    assert json.loads(made.refuse(0, -1, "no", {"d": 1})) == {
        "jsonrpc": "2.0",
        "id": 0,
        "error": {"code": -1, "message": "no", "data": {"d": 1}},
    }
    assert made.refuse(0, -1, "no") is None
    assert received(made, id=0, method="ping") == Asked(0, "ping", {})


@pytest.mark.parametrize("request_id", [0, -1, 2**53, "", "0", "\ud800", 1.5, 1e300])
def test_the_id_of_the_server_comes_back_as_it_was(request_id):
    made = session()
    asked = received(made, id=request_id, method="ping")
    assert json.loads(made.answer(asked.request_id, {}))["id"] == request_id


@pytest.mark.parametrize("named", ["null", "true", "[]", "{}", "NaN", "Infinity", "1e999"])
def test_an_id_that_cannot_be_answered_is_no_request(named):
    made = session()
    event = only(made.receive(('{"id":%s,"method":"ping"}' % named).encode()))
    assert event.kind == "request id"


def test_the_same_id_twice_is_refused_while_the_first_is_open():
    made = session()
    received(made, id=1, method="ping")
    assert received(made, id=1, method="roots/list").kind == "request id"
    assert only(made.receive(b'{"id":1.0,"method":"roots/list"}')).kind == "request id"
    assert isinstance(received(made, id="1", method="roots/list"), Asked)
    assert json.loads(made.answer(1, {"first": True}))["result"] == {"first": True}


def test_an_answer_without_a_json_form_leaves_the_request_open():
    made = session()
    received(made, id=1, method="sampling/createMessage")
    with pytest.raises(ValueError):
        made.answer(1, {"a": math.nan})
    with pytest.raises(ValueError):
        made.refuse(1, -1, "no", {"a": object()})
    assert made.refuse(1, -32603, "no") is not None


def test_a_withdrawn_request_gets_no_answer():
    made = session()
    received(made, id=1, method="ping")
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1.0}}
    withdrawn = received(made, **cancelled)
    assert withdrawn == Withdrawn(1)
    assert type(withdrawn.request_id) is int, "the id as the request had it"
    assert received(made, **cancelled).kind == "cancelled"
    assert made.answer(1, {}) is None


@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"requestId": [1]}, {"requestId": True}, {"requestId": 2}])
@pytest.mark.parametrize("revision", [LEGACY_REVISION, MODERN_REVISION])
def test_a_cancel_of_nothing(revision, params):
    made = session(revision)
    if revision == LEGACY_REVISION:
        received(made, id=1, method="ping")
    else:
        made.request(Call("subscriptions/listen"), "subscriptions/listen", {})
    assert received(made, method="notifications/cancelled", params=params).kind == "cancelled"


@pytest.mark.parametrize("revision", LEGACY)
def test_no_legacy_server_cancels_a_request_of_ours(revision):
    made = session(revision)
    call = opened(made)
    assert received(made, method="notifications/cancelled", params={"requestId": 0}).kind == "cancelled"
    assert made.in_flight() == [call]


@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.parametrize("named", [1, 1.0])
def test_a_modern_server_ends_a_subscription_and_nothing_else(revision, named):
    """Specification 2026-07-28, cancellation: servers must not cancel for any other purpose."""
    made = session(revision)
    call, listen = opened(made), opened(made, "subscriptions/listen", progress=True)
    event = received(made, method="notifications/cancelled", params={"requestId": 0})
    assert event == Oddity("cancelled", "a server may end a subscription, but not tools/call")
    assert received(made, method="notifications/cancelled", params={"requestId": named}) == Answered(listen, {}, None)
    assert made.in_flight() == [call]
    assert made._watched == {}


class RetiredMeanwhile(Call):
    """Another thread ends the subscription at the moment at which its method is looked at."""

    def __init__(self, made):
        super().__init__("subscriptions/listen")
        self._made = made

    @property
    def method(self):
        self._made.retire(self)
        return "subscriptions/listen"

    @method.setter
    def method(self, method):
        pass


def test_a_subscription_that_ends_on_both_sides_at_once_ends_once():
    made = session(MODERN_REVISION)
    listen = RetiredMeanwhile(made)
    made.request(listen, "subscriptions/listen", {})
    assert received(made, method="notifications/cancelled", params={"requestId": 0}).kind == "cancelled"


@pytest.mark.parametrize("revision", MODERN)
def test_a_modern_server_asks_nothing(revision):
    made = session(revision)
    event = received(made, id=1, method="sampling/createMessage")
    assert event == Oddity("request", "revision 2026-07-28 lets no server send 'sampling/createMessage'")
    assert made.answer(1, {}) is None


# --- other messages


def test_other_notifications():
    made = session()
    assert received(made, method="notifications/x", params={"a": 1}) == Notified("notifications/x", {"a": 1})
    assert received(made, method="notifications/x") == Notified("notifications/x", {})
    assert received(made, method="notifications/x", params=[1]) == Notified("notifications/x", {})


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"Listening on port 3000", "invalid message"),
        (b"", "invalid message"),
        (b'log: {"id":0,"result":{}}', "invalid message"),
        (b"[" * 200_000, "invalid message"),
        (b"7", "not an object"),
        (b'"text"', "not an object"),
        (b"null", "not an object"),
        (b'{"method":7}', "method"),
        (b'{"method":%s1%s}' % (b"[" * 900, b"]" * 900), "method"),
        (b'{"method":"ping","id":%s1%s}' % (b"[" * 900, b"]" * 900), "request id"),
        (b'{"id":%s1%s,"result":{}}' % (b"[" * 900, b"]" * 900), "unknown answer"),
        (b"[%s1%s]" % (b"[" * 900, b"]" * 900), "not an object"),
        (b"[]", "empty batch"),
        (b"[[]]", "not an object"),
        (b'["x"]', "not an object"),
        (b'{"id":1%s,"result":{}}' % (b"0" * 300), "late answer"),
    ],
)
def test_what_is_no_message_is_said_and_survived(data, kind):
    made = session("2025-03-26")
    call = opened(made)
    event = only(made.receive(data))
    assert event.kind == kind
    assert len(event.detail) < 400
    assert event.detail.isprintable()
    assert made.in_flight() == [call]


def batch_of(made):
    first, second = opened(made), opened(made)
    answers = [{"id": 1, "result": {"n": 1}}, {"method": "n"}, 5, {"id": 0, "error": {"code": -1, "message": "no"}}]
    return first, second, json.dumps([*answers, {"id": "s", "method": "ping"}]).encode()


@pytest.mark.parametrize("revision", [None, "2025-03-26"])
def test_a_batch_is_all_its_messages(revision):
    made = session(revision)
    first, second, batch = batch_of(made)
    one, notified, oddity, other, asked = made.receive(batch)
    assert one == Answered(second, {"n": 1}, None)
    assert notified == Notified("n", {})
    assert oddity == Oddity("not an object", "in a batch: 5")
    assert other.call is first
    assert other.failure.code == -1
    assert asked == Asked("s", "ping", {})
    assert made.in_flight() == []


@pytest.mark.parametrize("revision", sorted(set(REVISIONS) - {"2025-03-26"}))
def test_a_batch_where_there_are_none_loses_no_answer(revision):
    made = session(revision)
    first, second, batch = batch_of(made)
    oddity, *events = made.receive(batch)
    assert oddity == Oddity("batch", "revision %s has no batches" % revision)
    assert {event.call for event in events if isinstance(event, Answered)} == {first, second}


# --- adopting a revision


def test_a_request_made_while_a_log_level_is_set_has_all_its_metadata():
    """Both forms of the metadata are replaced whole, never filled in place."""
    made = session(MODERN_REVISION)
    before = dict(made._meta), made._meta_json
    held = made._meta
    made.adopt(made.revision, "debug")
    assert (dict(held), before[1]) == before
    assert made._meta == json.loads(made._meta_json) == {**before[0], LOG_LEVEL: "debug"}
    assert (made.log_level, made.revision) == ("debug", REVISIONS[MODERN_REVISION])
    made.adopt(None)
    assert (made._meta, made._meta_json, made.revision) == ({}, b"", None)


# --- answers that cannot be decoded

BROKEN = {
    "no UTF-8": b'{"jsonrpc":"2.0","id":0,"result":{"text":"caf\xe9"}}',
    "no UTF-8, the id behind": b'{"result":{"text":"caf\xe9","id":7},"jsonrpc":"2.0","id":0}',
    "no UTF-8, an error": b'{"id":0.0,"error":{"code":1,"message":"\xff"}}',
    "cut off": b'{"jsonrpc": "2.0", "id": 0, "result": {"content": [{"type": "te',
    "cut off, the id first": b'{"id":0,"jsonrpc":"2.0","error":{"code',
    "more behind it": b'{"jsonrpc":"2.0","result":{"id":7},"id":0} DEBUG: answered',
    "two on a line": b'{"jsonrpc":"2.0","id":0,"result":{}}{"jsonrpc":"2.0","id":7,"result":{}}',
    "too deep": b'{"jsonrpc":"2.0","id":0,"result":' + b"[" * 200_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_cannot_be_decoded_fails_its_call(data):
    made = session()
    call = opened(made, progress=True)
    event = only(made.receive(data))
    assert type(event) is Answered and event.call is call and event.result is None
    assert type(event.failure) is InvalidMessage
    assert made.in_flight() == [] and not made.retire(call)


NOBODYS = {
    "a request": b'{"jsonrpc":"2.0","id":0,"method":"roots/list","params":{"x":"\xff"}}',
    "a request, cut off": b'{"jsonrpc":"2.0","id":0,"method":"roots/l',
    "not in flight": b'{"jsonrpc":"2.0","id":7,"result":{"x":"\xff"}}',
    "an id of text": b'{"jsonrpc":"2.0","id":"0","result":{"x":"\xff"}}',
    "the id of something inside": b'{"jsonrpc":"2.0","result":{"items":[{"id":0,"result":1',
    "the end of something inside": b'{"jsonrpc":"2.0","result":{"items":[{"x":1,"id":0}',
    "no object": b'[{"jsonrpc":"2.0","id":0,"result":{}}',
    "nothing much": b"\xff",
}


@pytest.mark.parametrize("data", NOBODYS.values(), ids=NOBODYS)
def test_what_cannot_be_decoded_and_is_no_answer_of_a_call_for_sure(data):
    made = session()
    call = opened(made)
    event = only(made.receive(data))
    assert type(event) is Oddity and event.kind == "invalid message"
    assert made.in_flight() == [call]
