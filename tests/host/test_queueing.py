"""Calls of a server that takes one at a time."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, List

import pytest

from mcpsync import Host, RequestTimeout, Timeouts
from mcpsync.host.queueing import Turnstile
from tests.host.inside import inside


class Counting:
    """A tool that notes how many calls of it run at the same time."""

    def __init__(self) -> None:
        self.most = self.now = 0
        self.gate = threading.Event()
        self.begun = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, params: Dict[str, Any]) -> Dict[str, Any]:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.begun.set()
        self.gate.wait(10)
        with self._lock:
            self.now -= 1
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}


def test_in_the_order_of_coming() -> None:
    turnstile, order, waiting = Turnstile("s"), [], []
    timeouts = Timeouts(call=10)

    def call(number: int) -> None:
        with turnstile.turn(timeouts, "t"):
            order.append(number)

    with turnstile.turn(timeouts, "t"):
        for number in range(5):
            thread = threading.Thread(target=call, args=(number,))
            thread.start()
            waiting.append(thread)
            while len(turnstile._waiting) <= number:
                pass
    for thread in waiting:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_the_turn_does_not_come_in_time_and_is_not_lost() -> None:
    turnstile, results = Turnstile("s"), []

    def impatient() -> None:
        try:
            with turnstile.turn(Timeouts(call=0.05), "t"):
                results.append("turn")
        except RequestTimeout as error:
            results.append(str(error))

    with turnstile.turn(Timeouts(), "t"):
        thread = threading.Thread(target=impatient)
        thread.start()
        thread.join()
        with turnstile.turn(Timeouts(), "t"):  # of the thread that has it: goes through
            pass
    assert "no turn within 0.05 s: the server takes one call at a time" in results[0]
    with turnstile.turn(Timeouts(call=0.05), "t"):
        pass


@pytest.mark.parametrize("parallel", [True, False])
def test_calls_of_a_host(parallel: bool) -> None:
    from mcpsync.config import Config, ServerConfig
    from mcpsync.transport.memory import StreamServer

    counting = Counting()

    def serve(client: Any) -> None:
        for data in client:
            message = json.loads(data)
            if message.get("method") == "tools/call":

                def answer(message: Any = message) -> None:
                    result = counting(message["params"])
                    client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

                threading.Thread(target=answer).start()
            elif "id" in message:
                results = {
                    "initialize": {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "s", "version": "1"},
                    },
                    "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
                }
                client.send(
                    json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}).encode()
                )

    entry = ServerConfig("s", transport="memory", supports_parallel=parallel)
    host = Host(Config({}), protocol="2025-06-18", approve=lambda _: "once")
    host._fleet.change(lambda old: {"s": _entry(entry, StreamServer(serve, server_name="s"))})
    texts: List[str] = []

    def call(text: str) -> None:
        texts.append(host.call_tool("mcp__s__work", {"text": text}).text)

    with host:
        threads = [threading.Thread(target=call, args=(str(number),)) for number in range(4)]
        for thread in threads:
            thread.start()
        assert counting.begun.wait(10)
        if parallel:
            while counting.now < 4:
                pass
        counting.gate.set()
        for thread in threads:
            thread.join()
    assert sorted(texts) == ["0", "1", "2", "3"]
    assert counting.most == (4 if parallel else 1)


def _entry(config: Any, factory: Any) -> Any:
    from mcpsync.host.roster import Entry

    return Entry(config, factory=factory)


def test_a_quick_server_needs_no_turns() -> None:
    with Host.from_config({"mcpServers": {}}, approve=lambda _: "once") as host:
        host.connect_all({"a": inside()})
        assert host._fleet.members["a"].turnstile is None
