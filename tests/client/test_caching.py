"""Results that are used again: no request, never an older one behind a change, never somebody else's."""

from __future__ import annotations

import copy
import json
import os
import threading
import timeit
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

import mcpsync
from mcpsync import Backoff, Client, ClientClosed, ConfigError, Hook, ProcessExited, ResponseCache
from mcpsync.client.caching import Caching
from mcpsync.connection.call import Wanted
from mcpsync.deadline import Timeouts
from mcpsync.transport.memory import Exchange, ExchangeServer, ServerEnd, StreamServer
from tests.faults.watch import Seen
from tests.peers import http
from tests.peers.http import HttpPeer
from tests.peers.http_servers import Modern
from tests.peers.scripted import peer

READ = "resources/read"
LISTEN = "subscriptions/listen"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LISTINGS = ["tools", "prompts", "resources", "resource_templates"]


class Shelf:
    """A server in this process, whose results name its version.

    :param hints: of its results
    :ivar asked: how often, by method
    :ivar version: raised by the tool ``change``, which tells of it before it answers
    """

    def __init__(self, era: str = "modern", pages: int = 1, **hints: Any) -> None:
        self.era = era
        self.pages = pages
        self.hints: Dict[str, Any] = {"ttlMs": 60_000, "cacheScope": "private", **hints}
        self.asked: Counter[str] = Counter()
        self.version = 0
        self.bad_cursors = False
        self.held: Optional[Callable[[], None]] = None

    def stream(self) -> StreamServer:
        return StreamServer(self._serve, server_name="shelf")

    def _serve(self, client: ServerEnd) -> None:
        for data in client:
            self.take(json.loads(data), client.send)

    def exchange(self) -> ExchangeServer:
        def serve(exchange: Exchange) -> None:
            self.take(json.loads(exchange.request.data), exchange.send)

        return ExchangeServer(serve, server_name="shelf")

    def take(self, message: Dict[str, Any], send: Callable[[bytes], Any]) -> None:
        def tell(**fields: Any) -> None:
            send(json.dumps({"jsonrpc": "2.0", **fields}).encode())

        if "id" not in message:
            return
        method, params, number = message["method"], message.get("params", {}), message["id"]
        self.asked[method] += 1
        if method == "server/discover" and self.era == "legacy":
            tell(id=number, error={"code": -32601, "message": "no"})
        elif self.bad_cursors and "cursor" in params:
            self.bad_cursors = False
            tell(id=number, error={"code": -32602, "message": "no such cursor"})
        elif method == "tools/call" and params["name"] == "change":
            self.version += 1
            arguments = params.get("arguments", {})
            tell(method=arguments.get("tell", "notifications/tools/list_changed"), params=arguments.get("params", {}))
            tell(id=number, result={"resultType": "complete", "content": []})
        else:
            result = self.result(method, params)
            if self.held is not None and method == "tools/list":
                held, self.held = self.held, None
                held()
                tell(method="notifications/tools/list_changed")
            tell(id=number, result={"resultType": "complete", **self.hints, **result})

    def result(self, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        version = str(self.version)
        if method == "server/discover":
            return {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": True}},
            }
        if method == "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                "serverInfo": {"name": "shelf", "version": "1"},
            }
        if method == READ:
            if params["uri"] == "ask:" and "requestState" not in params:
                return {"resultType": "input_required", "requestState": "s"}
            return {"contents": [{"uri": params["uri"], "text": version}]}
        page = int(params.get("cursor", "0"))
        more = {"nextCursor": str(page + 1)} if page + 1 < self.pages else {}
        return {
            "tools": [{"name": version, "inputSchema": {"type": "object", "required": []}}],
            "prompts": [{"name": version}],
            "resources": [{"uri": "a:", "name": version}],
            "resourceTemplates": [{"uriTemplate": "a:{b}", "name": version}],
            **more,
        }


def names(client: Client, **how: Any) -> List[str]:
    return [tool.name for tool in client.list_tools(**how)]


@pytest.mark.parametrize("shape", ["stream", "exchange"])
@pytest.mark.parametrize("pages", [1, 3])
@pytest.mark.parametrize("what", LISTINGS)
def test_a_listing_is_asked_for_once(shape: str, pages: int, what: str) -> None:
    shelf = Shelf(pages=pages)
    with mcpsync.connect(getattr(shelf, shape)()) as client:
        first = getattr(client, "list_" + what)()
        asked = sum(shelf.asked.values())
        assert getattr(client, "list_" + what)() == first
        assert list(getattr(client, "iter_" + what)()) == first
        assert len(first) == pages
        assert sum(shelf.asked.values()) == asked


@pytest.mark.alone
@pytest.mark.timed
def test_a_hit_costs_less_than_five_microseconds() -> None:
    shelf = Shelf(pages=1)
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    original = shelf.result
    shelf.result = lambda method, params: {**original(method, params), "tools": [tool] * 50}  # type: ignore[method-assign]
    with mcpsync.connect(shelf.stream()) as client:
        for ask in (client.list_tools, lambda: client.read_resource("a:")):
            ask()
            cost = min(timeit.repeat(ask, number=5_000, repeat=10)) / 5_000
            print("a hit: %.2f us" % (cost * 1e6))
            assert cost < 5e-6
    assert (shelf.asked["tools/list"], shelf.asked[READ]) == (1, 1)


def test_resources_are_kept_each() -> None:
    shelf = Shelf()
    with mcpsync.connect(shelf.stream()) as client:
        read = [client.read_resource(uri).contents[0].uri for uri in ("a:", "b:", "a:", "b:")]
    assert read == ["a:", "b:", "a:", "b:"]
    assert shelf.asked[READ] == 2


def test_use_refresh_bypass() -> None:
    shelf = Shelf(pages=2)
    with mcpsync.connect(shelf.stream()) as client:
        assert names(client, cache="bypass") == ["0", "0"]
        shelf.version = 1
        assert names(client) == ["1", "1"], "a bypass keeps nothing"
        shelf.version = 2
        assert names(client, cache="bypass") == ["2", "2"]
        assert names(client) == ["1", "1"], "nor drops anything"
        assert names(client, cache="refresh") == ["2", "2"]
        shelf.version = 3
        assert names(client) == ["2", "2"]
        assert [client.read_resource("a:", cache=each).text for each in ("use", "bypass", "refresh")] == ["3"] * 3
        assert client.read_resource("a:", meta={"k": 1}).text == "3"
        assert shelf.asked[READ] == 4
        for method in (client.list_tools, client.iter_prompts, lambda cache: client.read_resource("a:", cache=cache)):
            with pytest.raises(ConfigError, match="cache takes 'use', 'refresh' or 'bypass', not 'never'"):
                method(cache="never")


@pytest.mark.parametrize(
    ("hints", "options"),
    [
        *(({"ttlMs": 0}, {}), ({"ttlMs": -5}, {}), ({"ttlMs": "60000"}, {}), ({"ttlMs": None}, {})),
        *(({}, {"cache": False}), ({}, {"protocol": "legacy"})),
        ({}, {"hooks": [Hook()]}),  # may sign each request otherwise
        ({"cacheScope": "everyone"}, {"hooks": [Hook()]}),
    ],
)
def test_what_is_not_kept_is_asked_for_each_time_and_is_free(hints: Dict[str, Any], options: Dict[str, Any]) -> None:
    shelf = Shelf("legacy" if options.get("protocol") else "modern", **hints)
    with mcpsync.connect(shelf.stream(), **options) as client:
        for _ in range(2):
            client.list_tools()[0].input_schema["required"].append("a")  # type: ignore[index]
            client.read_resource("a:")
    assert (shelf.asked["tools/list"], shelf.asked[READ]) == (2, 2)


def test_tools_are_called_each_time() -> None:
    shelf = Shelf()
    with mcpsync.connect(shelf.stream()) as client:
        for _ in range(2):
            client.call_tool("work", check=False)
            client.request("tools/list")
            list(client.iterate("tools/list", "tools", dict))
    assert (shelf.asked["tools/call"], shelf.asked["tools/list"]) == (2, 4)


def test_what_took_further_rounds_is_not_kept() -> None:
    shelf = Shelf()
    with mcpsync.connect(shelf.stream()) as client:
        assert [client.read_resource("ask:").text for _ in range(2)] == ["0", "0"]
    assert shelf.asked[READ] == 4
    wanted = Wanted(Timeouts())
    wanted.further = []
    assert wanted.after(1.0).further is wanted.further, "also where the connection has to be made first"


def test_nobody_changes_what_others_are_given() -> None:
    with mcpsync.connect(Shelf().stream()) as client:
        for _ in range(2):
            tools = client.list_tools()
            with pytest.raises(TypeError, match=r"cannot be changed: copy.deepcopy\(\) makes one that can"):
                tools[0].input_schema["type"] = "array"  # type: ignore[index]
            with pytest.raises(TypeError, match="shared"):
                tools[0].description = "other"
            copy.deepcopy(tools)[0].description = "other"
            tools.clear()
        assert names(client) == ["0"]


# -- changes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "dropped"),
    [
        ({}, {"tools/list"}),
        ({"tell": "notifications/prompts/list_changed"}, {"prompts/list"}),
        ({"tell": "notifications/resources/list_changed"}, {"resources/list", "resources/templates/list", READ}),
        ({"tell": "notifications/resources/updated", "params": {"uri": "a:/part"}}, {READ}),
        ({"tell": "notifications/resources/updated", "params": {"uri": "b:"}}, set()),
        ({"tell": "notifications/message", "params": {"level": "info", "data": 1}}, set()),
    ],
)
def test_what_is_told_drops_what_it_concerns(arguments: Dict[str, Any], dropped: Any) -> None:
    shelf = Shelf()

    def all_of(client: Client) -> None:
        for what in LISTINGS:
            getattr(client, "list_" + what)()
        client.read_resource("a:")

    with mcpsync.connect(shelf.stream()) as client:
        all_of(client)
        before = Counter(shelf.asked)
        client.call_tool("change", arguments)
        all_of(client)
        assert {method for method in shelf.asked - before if method != "tools/call"} == set(dropped)


def test_an_answer_that_a_change_overtook_is_not_kept() -> None:
    shelf = Shelf()

    def change() -> None:
        shelf.version = 1

    shelf.held = change
    with mcpsync.connect(shelf.stream()) as client:
        assert names(client) == ["0"], "made before the change, and on its way when that was told"
        assert names(client) == ["1"]


@pytest.mark.parametrize(("shape", "rounds"), [("stream", 80), ("exchange", 20)])  # the latter takes threads for each
def test_no_change_is_missed_by_whoever_was_answered_after_it(shape: str, rounds: int) -> None:
    shelf = Shelf()
    over = threading.Event()
    failures: List[Any] = []
    with mcpsync.connect(getattr(shelf, shape)()) as client:

        def list_on() -> None:
            seen = 0
            while not over.is_set():
                known = changes[0]
                found = int(names(client)[0])
                if found < max(known, seen):
                    failures.append((found, known, seen))
                seen = max(seen, known)

        changes = [0]
        others = [threading.Thread(target=list_on) for _ in range(2)]
        for each in others:
            each.start()
        for number in range(1, rounds + 1):
            client.call_tool("change")
            changes[0] = number
            found = names(client)
            if found != [str(number)]:
                failures.append((number, found))
        over.set()
        for each in others:
            each.join()
    assert failures == []
    assert shelf.asked["tools/list"] >= rounds


def test_over_stdio(tmp_path: Path) -> None:
    def listed(server: Any, request: Any) -> Any:
        return {"tools": server.tools, "ttlMs": 60_000, "cacheScope": "public"}

    server = peer(tmp_path, era="modern", handlers={"tools/list": listed})
    with mcpsync.connect(server.command, cache=ResponseCache(listen=True)) as client:
        server.wait_for(LISTEN)
        client.call_tool("changed", {"tool": "first"})
        for number in range(20):
            client.call_tool("changed", {"tool": "t%d" % number})
            for _ in range(3):
                assert names(client)[-1] == "t%d" % number
    assert len(server.received("tools/list")) == 20


class Listened(Modern):
    """Over HTTP: changes are told on a stream of their own, which ends when told to."""

    def __init__(self) -> None:
        super().__init__(subscriptions__listen=self.listen)
        self.version = 0
        self.out: List[Any] = []
        self.opened = threading.Semaphore(0)
        self.ending = threading.Event()

    def listen(self, exchange: http.Exchange, message: Dict[str, Any]) -> None:
        exchange.start()
        meta = {SUBSCRIPTION: message["id"]}
        params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        exchange.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        self.out.append((exchange, meta))
        self.opened.release()
        while not self.ending.is_set() and not exchange.wait_closed(0.01):
            pass
        self.ending.clear()
        exchange.end()

    def change(self) -> None:
        self.version += 1
        exchange, meta = self.out[-1]
        params = {"_meta": meta}
        exchange.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params})

    def discovered(self) -> Dict[str, Any]:
        return {**super().discovered(), "capabilities": {"tools": {"listChanged": True}}}

    def listing(self, method: str) -> Dict[str, Any]:
        return {"ttlMs": 60_000, "cacheScope": "private"}

    def result(self, message: Dict[str, Any]) -> Dict[str, Any]:
        return {"tools": [{"name": str(self.version), "inputSchema": {"type": "object"}}]}


def test_over_http_and_a_stream_that_ends() -> None:
    behaviour, heard = Listened(), Seen()
    with (
        HttpPeer(behaviour) as server,
        mcpsync.connect(
            server.url,
            cache=ResponseCache(listen=True),
            on_notification=lambda method, params: heard(method),
            backoff=Backoff((0.01,) * 5),
        ) as client,
    ):
        assert behaviour.opened.acquire(timeout=10)
        heard.wait_count(1)
        assert names(client) == names(client) == ["0"]
        count = len(server.requests)
        assert names(client) == ["0"]
        assert len(server.requests) == count
        behaviour.change()
        heard.wait_count(2)  # the acknowledgement, and the change
        assert names(client) == ["1"]
        behaviour.version = 2  # which nobody tells
        behaviour.ending.set()
        assert behaviour.opened.acquire(timeout=10), "it is opened again"
        heard.wait_count(3)
        assert names(client) == ["2"]


# -- whose it is, and how long a client has it -------------------------------------------------------------------


def test_a_lost_connection_counts_as_a_change(tmp_path: Path) -> None:
    shelf = Shelf()
    server = shelf.stream()
    with mcpsync.connect(server) as client:
        names(client)
        client.read_resource("a:")
        shelf.version = 1
        client.reconnect()
        assert names(client) == ["1"]
        assert client.read_resource("a:").text == "1"


def test_close_ends_it() -> None:
    client = mcpsync.connect(Shelf().stream(), cache=ResponseCache(stale_if_error=60))
    names(client)
    client.read_resource("a:")
    client.close()
    for ask in (client.list_tools, lambda: client.read_resource("a:")):
        with pytest.raises(ClientClosed):
            ask()


def test_a_stale_result_in_place_of_an_outage(tmp_path: Path) -> None:
    def listed(server: Any, request: Any) -> Any:
        return {"tools": server.tools, "ttlMs": 60_000, "cacheScope": "public"}

    def read(server: Any, request: Any, uri: str) -> Any:
        return {"contents": [{"uri": uri, "text": "x"}], "ttlMs": 60_000, "cacheScope": "public"}

    server = peer(tmp_path, era="modern", handlers={"tools/list": listed, READ: read})
    options: Dict[str, Any] = {"backoff": Backoff((60.0,)), "cache": ResponseCache(stale_if_error=60)}
    with mcpsync.connect(server.command, **options) as client:
        found = names(client)
        text = client.read_resource("a:").text
        with pytest.raises(ProcessExited):
            client.call_tool("die")
        assert names(client) == found
        assert client.read_resource("a:").text == text == "x"
        for ask in (lambda: names(client, cache="refresh"), client.list_prompts, lambda: client.read_resource("b:")):
            with pytest.raises(mcpsync.ConnectionLost):
                ask()
    assert len(server.received("tools/list")) == 1


def test_an_answer_of_the_server_is_never_replaced_by_a_stale_result() -> None:
    shelf = Shelf(ttlMs=1)
    now = [0.0]
    with Client(shelf.stream(), cache=ResponseCache(stale_if_error=60)) as client:
        assert client._caching is not None
        client._caching._now = lambda: now[0]
        names(client)
        now[0] = 1.0
        shelf.result = lambda method, params: {"tools": None}  # type: ignore[method-assign]
        with pytest.raises(mcpsync.InvalidMessage):
            names(client)


def test_a_cursor_that_is_no_more_starts_the_listing_anew() -> None:
    shelf = Shelf(pages=2)
    with mcpsync.connect(shelf.stream()) as client:
        names(client)
        assert client._caching is not None
        client._caching._responses._drop(("tools/list", "1"))  # as if its time alone were over
        shelf.version, shelf.bad_cursors = 1, True
        assert names(client) == ["1", "1"]


def test_headers_that_change_change_whose_results_they_are() -> None:
    headers = {"X-Tenant": "a"}
    behaviour = Listened()
    with HttpPeer(behaviour) as server, mcpsync.connect(server.url, headers=headers) as client:
        assert names(client) == ["0"]
        behaviour.version = 1
        assert names(client) == ["0"]
        headers["X-Tenant"] = "b"
        assert names(client) == ["1"]


@pytest.mark.parametrize("scope", ["private", "public"])
def test_a_function_of_headers_keeps_what_is_public_alone(scope: str) -> None:
    behaviour = Listened()
    behaviour.listing = lambda method: {"ttlMs": 60_000, "cacheScope": scope}  # type: ignore[method-assign]
    with HttpPeer(behaviour) as server, mcpsync.connect(server.url, headers=lambda: {"X": "y"}) as client:
        names(client)
        behaviour.version = 1
        assert names(client) == ["1" if scope == "private" else "0"]


def test_a_forked_child_has_none() -> None:
    caching = Caching(ResponseCache(), lambda: None)
    key = ("tools/list", None)
    ticket = caching.begin(key, Wanted(Timeouts()))
    caching._responses.keep(ticket, "value", 1, 60_000, "public", None, caching._now())
    assert caching.fresh(key) == "value"
    with caching._lock:  # which another thread of the parent holds
        pid = os.fork()
        if pid == 0:
            caching.after_fork()
            empty: List[bool] = []
            other = threading.Thread(target=lambda: empty.append(caching.fresh(key) is None))
            other.start()
            other.join(10)
            os._exit(0 if empty == [True] else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, "yes", 1, ResponseCache(entries=0), ResponseCache(bytes=-1), ResponseCache(longest=float("inf"))),
        *(ResponseCache(stale_if_error=-1), ResponseCache(stale_if_error=float("nan")), ResponseCache(listen=1)),  # type: ignore[arg-type]
    ],
)
def test_options_that_are_none(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="cache takes True, False or a mcpsync"):
        Client(["x"], cache=wrong)


def test_identity_of_who_signed_in() -> None:
    from mcpsync.auth.store import MemoryStore
    from tests.client.test_signing_in import change_tokens, oauth, signing

    behaviour = Listened()
    store = MemoryStore()
    with signing(behaviour) as (_, resource), mcpsync.connect(resource.url, auth=oauth(store)) as client:
        assert names(client) == ["0"]
        behaviour.version = 1
        assert names(client) == ["0"]
        change_tokens(store, resource, access_token="somebody else's")
        client.login()
        assert names(client) == ["1"]
        behaviour.version = 2
        assert names(client) == ["1"]
        client.logout()
        with pytest.raises(mcpsync.McpError):
            names(client)


def test_results_are_held_against_a_schema_that_is_kept() -> None:
    shelf = Shelf()
    original = shelf.result
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = {"name": "work", "inputSchema": {"type": "object"}, "outputSchema": output}

    def result(method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        if method == "tools/call":
            return {"content": [], "structuredContent": {"n": params["arguments"]["n"]}}
        return {**original(method, params), "tools": [tool]}

    shelf.result = result  # type: ignore[method-assign]
    with mcpsync.connect(shelf.stream(), validate="strict") as client:
        for _ in range(2):
            client.list_tools()
            assert client.call_tool("work", {"n": 1}).structured == {"n": 1}
            with pytest.raises(mcpsync.SchemaMismatch):
                client.call_tool("work", {"n": "one"})
    assert shelf.asked["tools/list"] == 1
