"""What a call gets when its connection is lost while it is under way."""

from __future__ import annotations

import json
import queue
import threading
from typing import Any, List

import pytest

from mcpsync.connection.backoff import Backoff
from mcpsync.connection.connection import Connection
from mcpsync.core.headers import ParameterHeader
from mcpsync.deadline import Deadline
from mcpsync.errors import ClientClosed, ConnectFailed, ConnectionLost, McpError, RpcError
from mcpsync.transport.base import Transport
from mcpsync.transport.memory import ServerEnd, StreamServer
from tests.connection.memory_servers import PATIENCE, Peer, connected, settings

ACCEPTED = {"action": "accept", "content": {}}
NEVER_AGAIN = Backoff((600.0,))


class LastWords(Peer):
    """A server whose answer to a tool call is the last that it does.

    :ivar result: the members of the answer
    """

    def __init__(self, **members: Any) -> None:
        super().__init__("stream", "legacy")
        self.members = members
        self.server = StreamServer(self._serve_once, server_name="peer")

    def _serve_once(self, client: ServerEnd) -> None:
        for data in client:
            message = json.loads(data)
            if message.get("method") == "tools/call":
                client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **self.members}).encode())
                return
            self.script.take(data, client.send, client.send)


def test_an_error_that_the_server_sent_before_it_ended_is_what_the_call_raises() -> None:
    peer = LastWords(error={"code": -32000, "message": "out of paper"})
    for _ in range(20):
        with connected(peer, backoff=NEVER_AGAIN) as connection, pytest.raises(RpcError, match="out of paper"):
            connection.request("tools/call", {"name": "print"})


def test_a_result_of_a_later_round_is_not_lost_with_the_connection() -> None:
    peer = Peer("stream", "modern")
    peer.server = StreamServer(lambda client: _answer_second_round(peer, client), server_name="peer")
    for _ in range(20):
        handlers = {"elicitation/create": lambda params: ACCEPTED}
        with connected(peer, handlers=handlers, backoff=NEVER_AGAIN) as connection:
            result = connection.request("tools/call", {"name": "ask"})
            assert result["answer"] == ACCEPTED


def _answer_second_round(peer: Peer, client: ServerEnd) -> None:
    for data in client:
        peer.script.take(data, client.send, client.send)
        if "inputResponses" in json.loads(data).get("params", {}):
            return


def test_a_lost_call_names_the_next_attempt() -> None:
    peer = Peer("stream", "legacy")
    with connected(peer, backoff=NEVER_AGAIN) as connection:
        lost: queue.SimpleQueue[ConnectionLost] = queue.SimpleQueue()

        def call() -> None:
            try:
                connection.request("tools/call", {"name": "never"})
            except ConnectionLost as error:
                lost.put(error)

        caller = threading.Thread(target=call)
        caller.start()
        peer.script.next("call")
        peer.server.lose()
        error = lost.get(timeout=PATIENCE)
        caller.join(PATIENCE)
    assert error.maybe_executed
    assert error.next_attempt is not None and 590 < error.next_attempt <= 600


def test_a_factory_that_raises_ends_an_attempt_and_not_all_of_them() -> None:
    peer = Peer("stream", "legacy")
    states: queue.SimpleQueue[str] = queue.SimpleQueue()
    made: List[str] = []

    def factory() -> Transport:
        made.append("")
        if len(made) == 2:
            raise OSError("no port is free")
        return peer.server()

    with connected(peer, factory=factory, backoff=Backoff((0.01, 0.01)), on_state=states.put) as connection:
        peer.server.lose()
        seen = [states.get(timeout=PATIENCE) for _ in range(7)]
        assert seen == ["connecting", "ready", "waiting", "connecting", "waiting", "connecting", "ready"]
        assert connection.request("tools/call", {"name": "echo", "arguments": {}})["echo"] == {}


def test_what_a_factory_raises_is_named() -> None:
    def factory() -> Transport:
        raise OSError("no port is free")

    connection = Connection(settings(Peer("stream", "legacy"), factory=factory))
    with pytest.raises(ConnectFailed) as caught:
        connection.open()
    assert str(caught.value) == "server 'peer': the transport failed: OSError: no port is free"
    assert isinstance(caught.value.__cause__, OSError)
    connection.close()


def test_close_ends_every_session_that_calls_still_wait_on() -> None:
    peer = Peer("exchange", "legacy")
    outcomes: queue.SimpleQueue[BaseException] = queue.SimpleQueue()

    def never(connection: Connection) -> None:
        try:
            connection.request("tools/call", {"name": "never"})
        except McpError as error:
            outcomes.put(error)

    callers = []
    with connected(peer) as connection:
        for _ in range(3):
            callers.append(threading.Thread(target=never, args=(connection,)))
            callers[-1].start()
            peer.script.next("call")
            connection.reconnect()
    assert [type(outcomes.get(timeout=2.0)) for _ in callers] == [ClientClosed] * 3
    for caller in callers:
        caller.join(PATIENCE)
    assert not [thread.name for thread in threading.enumerate() if thread.name == "mcpsync-peer-reader"]


def test_a_submitted_request_that_cannot_be_made_leaves_nothing_in_flight() -> None:
    peer = Peer("exchange", "modern")
    with connected(peer) as connection:
        connection.mirrors["echo"] = (ParameterHeader("Mcp-Param-Size", ("size",)),)
        params = {"name": "echo", "arguments": {"size": 2**60}}
        submitted = connection.submit("tools/call", params, lambda result: result)
        assert isinstance(submitted.exception(PATIENCE), ValueError)
        link = connection.link
        assert link is not None and link.session.in_flight() == []


def test_a_factory_that_ends_its_thread_ends_an_attempt_and_not_all_calls() -> None:
    peer = Peer("stream", "legacy")
    states: queue.SimpleQueue[str] = queue.SimpleQueue()
    made: List[str] = []

    def factory() -> Transport:
        made.append("")
        if len(made) == 2:
            raise SystemExit(3)
        return peer.server()

    with connected(peer, factory=factory, backoff=Backoff((0.01,)), on_state=states.put) as connection:
        peer.server.lose()
        seen = [states.get(timeout=PATIENCE) for _ in range(5)]
        assert seen == ["connecting", "ready", "waiting", "connecting", "down"]
        assert connection.request("tools/call", {"name": "echo", "arguments": {}})["echo"] == {}


def test_a_transport_that_cannot_be_closed_keeps_no_thread_alive(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer("stream", "legacy")

    def factory() -> Transport:
        transport: Any = peer.server()
        close = transport.close

        def fails(deadline: Deadline) -> None:
            close(deadline)
            raise OSError("the port does not answer")

        transport.close = fails
        made: Transport = transport
        return made

    with connected(peer, factory=factory) as connection:
        assert connection.request("tools/call", {"name": "echo", "arguments": {}})["echo"] == {}
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("mcpsync-peer")] == []
    assert "the port does not answer" in caplog.text
