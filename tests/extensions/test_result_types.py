"""Extensions that a user declares, and the results of their own types, over both kinds of transports."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

import mcpsync
from mcpsync import Extension, InvalidMessage, RequestCancelled, RequestTimeout, RpcError
from mcpsync.connection.open_call import OpenCall
from tests.faults.watch import took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Modern
from tests.peers.scripted import peer

pytestmark = pytest.mark.own_methods("vouchers/redeem")

NAME = "com.example/vouchers"
VOUCHER = "com.example/voucher"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def asking(function: Any) -> Extension:
    return Extension(NAME, {"version": 2}, {VOUCHER: function})


class Vouchers(Modern):
    """A tool call gives a voucher; what it is worth is another request.

    :ivar got: all requests but the probe
    """

    def __init__(self) -> None:
        super().__init__(self.give, vouchers__redeem=self.redeem)
        self.got: List[Dict[str, Any]] = []
        self.unpaid = 0
        self.asked = threading.Event()

    def give(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        self.got.append(message)
        exchange.result({"resultType": VOUCHER, "voucher": "v1"})

    def redeem(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        self.got.append(message)
        self.asked.set()
        voucher = message["params"].get("voucher")
        if voucher == "never":
            exchange.wait_closed()
        elif voucher == "v1" and self.unpaid:
            self.unpaid -= 1
            exchange.result({"resultType": "complete", "content": [], "paid": False})
        elif voucher == "v1":
            exchange.result({"resultType": "complete", "content": [{"type": "text", "text": "a cake"}]})
        else:
            error = {"code": -32602, "message": "no such voucher"}
            exchange.respond(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})


Ask = Callable[..., str]
WAYS: Dict[str, Ask] = {
    "waited for": lambda client, **more: client.call_tool("work", {"a": 1}, **more).text,
    "submitted": lambda client, **more: client.submit("work", {"a": 1}, **more).result(10).text,
}


@pytest.fixture(params=sorted(WAYS))
def ask(request: pytest.FixtureRequest) -> Ask:
    return WAYS[request.param]


@contextmanager
def vouchers(function: Any) -> Iterator[Any]:
    server = Vouchers()
    with HttpPeer(server) as at, mcpsync.connect(at.url, extensions=asking(function)) as client:
        yield server, client


def test_a_function_makes_the_result_of_the_call(ask: Ask) -> None:
    seen: List[Any] = []

    def redeem(result: Dict[str, Any], call: OpenCall) -> Dict[str, Any]:
        seen.append((call.method, dict(call.params), threading.current_thread().name))
        answer = call.request("vouchers/redeem", {"voucher": result["voucher"]})
        while answer.get("paid") is False:
            call.wait(0.001)
            answer = call.request("vouchers/redeem", {"voucher": result["voucher"], "_meta": {"com.example/again": 1}})
        return answer

    with vouchers(redeem) as (server, client):
        server.unpaid = 2
        assert ask(client, meta={"com.example/trace": "t"}) == "a cake"
        assert [message["method"] for message in server.got] == ["tools/call"] + 3 * ["vouchers/redeem"]
        assert len({message["id"] for message in server.got}) == 4
        for message in server.got:
            meta = message["params"]["_meta"]
            assert meta[CAPABILITIES]["extensions"] == {NAME: {"version": 2}}
            assert meta["com.example/trace"] == "t"
        again = ["com.example/again" in message["params"]["_meta"] for message in server.got]
        assert again == [False, False, True, True]
        (method, params, thread) = seen[0]
        assert (method, params) == ("tools/call", {"name": "work", "arguments": {"a": 1}})
        assert "reader" not in thread and "watchdog" not in thread


def test_a_result_is_given_as_it_came_where_no_function_is(ask: Ask) -> None:
    with vouchers(None) as (_, client):
        assert ask(client) == ""
        assert client.call_tool("work").raw == {"resultType": VOUCHER, "voucher": "v1"}


def test_a_mapping_of_the_users_own_class_is_the_result() -> None:
    class Voucher(Dict[str, Any]):
        """Knows what it is."""

    with vouchers(lambda result, call: Voucher(result)) as (_, client):
        result = client.call_tool("work")
        assert isinstance(result.raw, Voucher) and result.raw["voucher"] == "v1"


def test_a_type_that_was_not_declared_is_invalid(ask: Ask) -> None:
    server = Vouchers()
    with HttpPeer(server) as at, mcpsync.connect(at.url, extensions={NAME: {}}) as client:
        with pytest.raises(InvalidMessage) as error:
            ask(client)
        assert "unknown resultType" in str(error.value)


def test_what_goes_wrong_is_the_calls_failure(ask: Ask) -> None:
    def misread(result: Dict[str, Any], call: OpenCall) -> Any:
        with pytest.raises(RpcError, match="no such voucher"):
            call.request("vouchers/redeem", {"voucher": "v2"})
        raise ZeroDivisionError("of the user's")

    with vouchers(misread) as (_, client), pytest.raises(ZeroDivisionError):
        ask(client)
    with vouchers(lambda result, call: "no mapping") as (_, client), pytest.raises(TypeError, match="not str"):
        ask(client)
    with vouchers(lambda result, call: call.request("vouchers/redeem", {})) as (_, client):
        with pytest.raises(RpcError, match="no such voucher") as error:
            ask(client)
        assert error.value.server == client.name


def test_an_error_of_the_function_names_the_call_and_one_of_its_requests_that_request(ask: Ask) -> None:
    def complain(result: Dict[str, Any], call: OpenCall) -> Any:
        call.request("vouchers/redeem", {"voucher": "v1"})
        raise mcpsync.ProtocolError("this voucher is stale")

    for function, method in (
        (complain, "tools/call"),
        (lambda result, call: call.request("vouchers/redeem", {}), "vouchers/redeem"),
    ):
        with vouchers(function) as (_, client):
            with pytest.raises(mcpsync.McpError) as error:
                ask(client)
            assert error.value.method == method


def test_the_time_of_the_call_goes_on(ask: Ask) -> None:
    def patient(result: Dict[str, Any], call: OpenCall) -> Any:
        call.wait(30)

    def hanging(result: Dict[str, Any], call: OpenCall) -> Any:
        return call.request("vouchers/redeem", {"voucher": "never"})

    for function in (patient, hanging):
        with vouchers(function) as (_, client), took() as measured, pytest.raises(RequestTimeout):
            ask(client, timeout=0.2)
        assert measured.seconds < 5


def test_an_open_call_can_be_cancelled_and_tidies_up() -> None:
    tidied = threading.Event()

    def hanging(result: Dict[str, Any], call: OpenCall) -> Any:
        try:
            return call.request("vouchers/redeem", {"voucher": "never"})
        except RequestCancelled:
            tidied.set()
            raise

    with vouchers(hanging) as (server, client):
        call = client.submit("work")
        assert server.asked.wait(10)
        assert call.cancel()
        with pytest.raises(RequestCancelled):
            call.result(10)
        assert tidied.wait(10)


def test_over_stdio_the_handlers_answer_for_the_extension(tmp_path: Path) -> None:
    def give(server, request):
        return {
            "resultType": "com.example/voucher",
            "inputRequests": {
                "who": {
                    "method": "elicitation/create",
                    "params": {
                        "message": "for whom?",
                        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
                    },
                }
            },
        }

    def redeem(server, request, inputResponses):
        server.result(request, {"resultType": "complete", "for": inputResponses["who"]["content"]["name"]})

    def ask_first(result: Dict[str, Any], call: OpenCall) -> Any:
        with pytest.raises(InvalidMessage, match="which no client answers"):
            call.ask({"x": {"method": "tools/call"}})
        return call.request("vouchers/redeem", {"inputResponses": call.ask(result["inputRequests"])})

    server = peer(tmp_path, give, handlers={"vouchers/redeem": redeem})
    options: Any = {"extensions": [{"com.example/other": {}}, asking(ask_first)]}
    with mcpsync.connect(server.command, elicitation=lambda request: {"name": "Ada"}, **options) as client:
        assert client.call_tool("give").raw["for"] == "Ada"


def test_what_a_server_declares(tmp_path: Path) -> None:
    declared = {"tools": {}, "extensions": {NAME: {"version": 1}}}
    for era in ("modern", "legacy"):
        server = peer(tmp_path, era=era, capabilities=declared)
        client = mcpsync.Client(server.command, extensions=asking(None))
        assert client.extensions == {}
        with client:
            assert client.extensions == {NAME: {"version": 1}}
        if era == "legacy":
            (initialize,) = server.received("initialize")
            assert initialize["params"]["capabilities"] == {"extensions": {NAME: {"version": 2}}}


def test_two_extensions_that_want_the_same_type() -> None:
    twice = [Extension("com.example/a", {}, {"x": None}), Extension("com.example/b", {}, {"x": None})]
    with pytest.raises(mcpsync.ConfigError, match="another extension"):
        mcpsync.Client(["true"], extensions=twice)
    for kind in ("complete", "input_required"):
        with pytest.raises(mcpsync.ConfigError, match="the protocol itself"):
            mcpsync.Client(["true"], extensions=Extension(NAME, {}, {kind: None}))
