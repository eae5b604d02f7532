"""A13: clients that were dropped without being closed."""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

import mcpsync
from tests.conftest import our_threads
from tests.faults.watch import Seen
from tests.peers.scripted import Peer, peer

FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """The warnings that were shown, on whatever thread."""
    seen = Seen()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, category, *rest: seen((category, str(message))))
        yield seen


def assert_closed_soon(server: Peer, warned: Seen, before: Any, times: int = 1) -> None:
    gc.collect()
    server.wait_ended(5)
    assert len(server.events("eof")) == times  # politely
    end = time.monotonic() + 2
    while our_threads() - before:
        assert time.monotonic() < end, our_threads()
        time.sleep(0.005)  # threads tell nobody when they have ended
    assert warned.items == [(ResourceWarning, "a client for server 'peer' was never closed")] * times


def test_a13_dropped(tmp_path: Path, warned: Seen) -> None:
    server, before = peer(tmp_path), our_threads()
    client = mcpsync.connect(server.command, name="peer")
    client.call_tool("echo")
    del client
    assert_closed_soon(server, warned, before)


def test_a13_dropped_before_it_was_used(tmp_path: Path, warned: Seen) -> None:
    server, before = peer(tmp_path), our_threads()
    mcpsync.connect(server.command, name="peer")
    assert_closed_soon(server, warned, before)


@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a13_an_agent_whose_methods_are_the_handlers(tmp_path: Path, warned: Seen, era: str, mode: str) -> None:
    """The client leads to the agent and the agent to the client; the threads must lead to neither."""
    server, before = peer(tmp_path, era=era), our_threads()

    class Agent:
        def __init__(self) -> None:
            self.asked = 0
            self.client = mcpsync.connect(
                server.command,
                name="peer",
                callbacks=mode,
                elicitation=self.answer,
                sampling=self.answer,
                roots=self.answer,
                on_log=self.note,
                on_notification=self.note,
                on_state=self.note,
                on_tools_changed=self.note,
                on_prompts_changed=self.note,
                on_resources_changed=self.note,
                stderr=self.note,
                log_level="info",
                debounce=0.01,
                timeouts=mcpsync.Timeouts(keepalive=30, idle_disconnect=60, max_lifetime=600),
            )
            self.client.subscribe_resource("item:1", self.note)

        def answer(self, *request: Any) -> Dict[str, Any]:
            self.asked += 1
            return {}

        def note(self, *arguments: Any) -> None:
            self.noted = arguments

    agent = Agent()
    client = agent.client
    question = {"method": "elicitation/create", "params": FORM}
    client.call_tool(*(("ask", question) if era == "legacy" else ("rounds", {"questions": {"q": question}})))
    client.call_tool("flood", {"count": 5, "progress": True}, on_progress=agent.note)
    client.call_tool("updated", {"uri": "item:1"})
    client.call_tool("changed")
    client.call_tool("write_stderr", {"size": 80})
    with pytest.raises(mcpsync.RequestTimeout):
        client.call_tool("silent", on_progress=agent.note, timeout=0.05)
    future = client.submit("silent", on_progress=agent.note)
    future.add_done_callback(agent.note)
    future.cancel()
    assert agent.asked == 1
    forgotten = weakref.ref(agent)
    del agent, client, future
    gc.collect()
    end = time.monotonic() + 5
    while forgotten() is not None:  # a callback may still be under way
        assert time.monotonic() < end, gc.get_referrers(forgotten())
        time.sleep(0.01)
        gc.collect()
    assert_closed_soon(server, warned, before)


def test_a13_a_dispatcher_that_leads_back(tmp_path: Path, warned: Seen) -> None:
    server, before = peer(tmp_path), our_threads()

    class Window:
        def __init__(self) -> None:
            self.thread = threading.get_ident()
            self.waiting: List[Callable[[], None]] = []
            self.client = mcpsync.connect(server.command, name="peer", callbacks=self, on_state=self.state)

        def __call__(self, callback: Callable[[], None]) -> None:
            self.waiting.append(callback)

        def state(self, state: str) -> None:
            """Shown in the window."""

    window = Window()
    window.client.call_tool("echo")
    del window
    assert_closed_soon(server, warned, before)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("tool", ["silent", "echo", "rounds"])
def test_a13_dropped_while_a_submitted_call_is_in_flight(tmp_path: Path, warned: Seen, tool: str, kept: bool) -> None:
    server, before = peer(tmp_path, era="modern"), our_threads()
    free, begun = threading.Event(), threading.Event()

    def block(request: Any) -> bool:
        begun.set()
        return free.wait(10)

    client = mcpsync.connect(server.command, name="peer", elicitation=block)
    arguments = {"questions": {"q": {"method": "elicitation/create", "params": FORM}}} if tool == "rounds" else {}
    called = Seen()
    future = client.submit(tool, arguments)
    future.add_done_callback(lambda future: called(1))
    if tool == "rounds":
        assert begun.wait(10)
    del client
    if kept:
        error = future.exception(5)
        assert error is None or isinstance(error, mcpsync.ClientClosed)
        assert tool == "echo" or error is not None
        called.wait_count(1)
    del future
    free.set()
    assert_closed_soon(server, warned, before)


def test_a13_dropped_in_any_state_but_open_needs_no_warning(tmp_path: Path, warned: Seen) -> None:
    before = our_threads()
    mcpsync.Client(["no-such-command"])
    client = mcpsync.Client(["no-such-command"])
    with pytest.raises(mcpsync.ConnectFailed):
        client.open()
    with pytest.raises(mcpsync.ConnectFailed):
        mcpsync.connect(["no-such-command"])
    closed = mcpsync.connect(peer(tmp_path).command)
    closed.close()
    del client, closed
    gc.collect()
    end = time.monotonic() + 2
    while our_threads() - before:
        assert time.monotonic() < end, our_threads()
        time.sleep(0.005)
    assert warned.items == []


def test_a13_dropped_while_it_waits_for_the_next_attempt(tmp_path: Path, warned: Seen) -> None:
    server, before = peer(tmp_path), our_threads()
    waiting = threading.Event()
    client = mcpsync.connect(
        server.command, name="peer", on_state=lambda state: waiting.set() if state == "waiting" else None
    )
    with pytest.raises(mcpsync.ProcessExited):
        client.call_tool("die")
    assert waiting.wait(10)
    del client
    gc.collect()
    end = time.monotonic() + 2
    while our_threads() - before:
        assert time.monotonic() < end, our_threads()
        time.sleep(0.005)
    assert len(server.events("started")) == 1
    assert warned.items == [(ResourceWarning, "a client for server 'peer' was never closed")]


@pytest.mark.parametrize("interval", [0.005, 1e-6])
def test_a13_many_dropped_by_many_threads(tmp_path: Path, warned: Seen, interval: float) -> None:
    server, before = peer(tmp_path), our_threads()

    def use() -> None:
        for _ in range(3):
            client = mcpsync.connect(server.command, name="peer")
            client.call_tool("echo")
            client.submit("silent")

    usual = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        users = [threading.Thread(target=use) for _ in range(4)]
        for user in users:
            user.start()
        for user in users:
            user.join()
    finally:
        sys.setswitchinterval(usual)
    del users
    assert_closed_soon(server, warned, before, times=12)
