"""A scripted server within the process, in both shapes that a transport can have, and connections to it."""

from __future__ import annotations

import json
import queue
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Tuple

from mcpsync.connection.connection import Connection
from mcpsync.connection.questions import Handler
from mcpsync.connection.settings import Settings
from mcpsync.deadline import Timeouts
from mcpsync.transport.memory import Exchange, ExchangeServer, MemoryServer, ServerEnd, StreamServer

PATIENCE = 10.0
CLIENT = {"name": "test", "version": "1"}
ELICITATION = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}

Send = Callable[[bytes], Any]
Message = Dict[str, Any]


class Script:
    """What the server does, whatever the shape; tools are named for it.

    :ivar told: what came to the server's notice, as (kind, detail): ``call``, ``cancelled``, ``ended``, ``note``
    :ivar slow: functions that send the progress of a ``slow_count``
    """

    def __init__(self, modern: bool) -> None:
        self.modern = modern
        self.told: queue.SimpleQueue[Tuple[str, Any]] = queue.SimpleQueue()
        self.slow: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards the two tables
        self._waiting: Dict[str, Tuple[Message, Send]] = {}
        self._asked = 0

    def next(self, kind: str) -> Any:
        """The detail of the next thing of this kind; what comes before it is skipped."""
        while True:
            told, detail = self.told.get(timeout=PATIENCE)
            if told == kind:
                return detail

    def rest(self) -> List[Tuple[str, Any]]:
        """Everything that was told and not asked for."""
        left = []
        while not self.told.empty():
            left.append(self.told.get())
        return left

    def take(self, data: bytes, send: Send, elsewhere: Send) -> None:
        """Deal with one message of the client; ``elsewhere`` sends on another stream than its own, if there is one."""
        message = json.loads(data)
        method = message.get("method")
        if method is None:
            self._answered(message)
        elif method == "notifications/cancelled":
            self.told.put(("cancelled", message["params"]["requestId"]))
        elif "id" not in message:
            self.told.put(("note", method))
        elif method == "server/discover" and self.modern:
            self.answer(message, send, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        elif method == "initialize" and not self.modern:
            revision = message["params"]["protocolVersion"]
            self.answer(message, send, {"protocolVersion": revision, "capabilities": {}, "serverInfo": CLIENT})
        elif method == "tools/call":
            self.told.put(("call", message["id"]))
            getattr(self, "tool_" + message["params"]["name"])(message, send, elsewhere)
        else:
            error = {"code": -32601, "message": "no such method"}
            send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    def answer(self, message: Message, send: Send, result: Dict[str, Any]) -> None:
        kind = {"resultType": "complete"} if self.modern else {}
        send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {**kind, **result}}).encode())

    def tool_echo(self, message: Message, send: Send, elsewhere: Send) -> None:
        self.answer(message, send, {"echo": message["params"]["arguments"]})

    def tool_elsewhere(self, message: Message, send: Send, elsewhere: Send) -> None:
        self.answer(message, elsewhere, {"came": "elsewhere"})

    def tool_count(self, message: Message, send: Send, elsewhere: Send) -> None:
        token = message["params"]["_meta"]["progressToken"]
        for number in range(3):
            params = {"progressToken": token, "progress": number}
            send(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode())
        self.answer(message, send, {"counted": 3})

    def tool_never(self, message: Message, send: Send, elsewhere: Send) -> None:
        """Is never answered."""

    tool_give_up = tool_never  # and its exchange ends

    def tool_slow_count(self, message: Message, send: Send, elsewhere: Send) -> None:
        """Is never answered; sends one progress notification when the test says so."""
        params = {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1}
        data = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode()
        self.slow.put(lambda: send(data))

    def tool_ask(self, message: Message, send: Send, elsewhere: Send) -> None:
        self._ask(message, send, send)

    def tool_ask_elsewhere(self, message: Message, send: Send, elsewhere: Send) -> None:
        self._ask(message, send, elsewhere)

    def _ask(self, message: Message, send: Send, by: Send) -> None:
        if self.modern:
            responses = message["params"].get("inputResponses")
            if responses is None:
                question = {"method": "elicitation/create", "params": ELICITATION}
                self.answer(message, send, {"resultType": "input_required", "inputRequests": {"it": question}})
            else:
                self.answer(message, send, {"answer": responses["it"]})
            return
        with self._lock:
            self._asked += 1
            key = "question-%d" % self._asked
            self._waiting[key] = (message, send)
        question = {"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": ELICITATION}
        by(json.dumps(question).encode())

    def _answered(self, message: Message) -> None:
        with self._lock:
            asker, send = self._waiting.pop(message["id"])
        self.answer(asker, send, {"answer": message.get("result", message.get("error"))})


class Peer:
    """A script behind one of the two transports.

    :ivar server: the transport factory
    :ivar ends_exchanges: the end of an exchange is how a request is cancelled
    """

    def __init__(self, shape: str, era: str) -> None:
        self.era = era
        self.script = Script(era == "modern")
        self.ends_exchanges = shape == "exchange" and era == "modern"
        self.shape = shape
        self.server: MemoryServer
        if shape == "stream":
            self.server = StreamServer(self._serve_stream, server_name="peer")
        else:
            self.server = ExchangeServer(self._serve_exchange, ending_cancels=self.ends_exchanges, server_name="peer")

    def _serve_stream(self, client: ServerEnd) -> None:
        for data in client:
            self.script.take(data, client.send, client.send)

    def _serve_exchange(self, exchange: Exchange) -> None:
        self.script.take(exchange.request.data, exchange.send, exchange.push)
        message = json.loads(exchange.request.data)
        lasts = message.get("method") == "tools/call" and message["params"]["name"] != "give_up"
        if lasts and exchange.wait_ended(PATIENCE):
            self.script.told.put(("ended", message["id"]))


def settings(peer: Peer, **changed: Any) -> Settings:
    """Settings for a connection to a peer."""
    handlers = {method: Handler(ask, _as_it_is) for method, ask in changed.pop("handlers", {}).items()}
    made: Dict[str, Any] = {
        "name": "peer",
        "factory": peer.server,
        "protocol": peer.era,
        "timeouts": Timeouts(connect=PATIENCE, call=PATIENCE),
        "client_info": CLIENT,
        "capabilities": {"elicitation": {"form": {}}} if handlers else {},
        "handlers": handlers,
        "callbacks": "pool",
        "notified": lambda method, params: None,
        "gap": _ignore_gap,
    }
    return Settings(**{**made, **changed})


def _as_it_is(answer: Dict[str, Any], params: Dict[str, Any]) -> Dict[str, Any]:
    return answer


def _ignore_gap(lists: FrozenSet[str]) -> None:
    """No list is kept."""


@contextmanager
def connected(peer: Peer, **changed: Any) -> Iterator[Connection]:
    """An open connection to a peer."""
    connection = Connection(settings(peer, **changed))
    try:
        connection.open()
        yield connection
    finally:
        connection.close()
