"""The calls of one turn of a model, at the same time where their servers allow that."""

from __future__ import annotations

import contextvars
import json
import threading
from concurrent.futures import Future
from typing import Any, Callable, Dict, Iterator, List

import pytest

from mcpsync import Host
from mcpsync.config import Config, ServerConfig
from mcpsync.connection.threads import Workers
from mcpsync.errors import RequestCancelled
from mcpsync.host import ApprovalRequest
from mcpsync.host.roster import Entry
from mcpsync.host.together import Together
from mcpsync.transport.memory import ServerEnd, StreamServer

WAIT = 10.0


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers("mcpsync-test-call", 64, calling=True)
    yield made
    made.stop()
    assert made.drain(WAIT)


def test_all_at_the_same_time_and_each_its_own_outcome(workers: Workers) -> None:
    meeting = threading.Barrier(5)

    def work(number: int) -> int:
        meeting.wait(WAIT)
        if number == 3:
            raise KeyError(number)
        return number

    with Together(workers) as group:
        waiting = [group.start(lambda number=number: work(number)) for number in range(5)]
        assert [waiting[number]() for number in (0, 1, 2, 4)] == [0, 1, 2, 4]
        with pytest.raises(KeyError, match="3"):
            waiting[3]()


def test_one_lane_is_one_after_the_other_and_holds_up_no_other(workers: Workers) -> None:
    order: List[Any] = []
    gate = threading.Event()
    with Together(workers) as group:
        lane = [group.start(lambda number=number: gate.wait(WAIT) and order.append(number), "a") for number in range(4)]
        group.start(lambda: order.append("other"), "b")()
        gate.set()
        for wait in lane:
            wait()
    assert order == ["other", 0, 1, 2, 3]


def test_no_more_than_the_limit(workers: Workers) -> None:
    lock, now, most = threading.Lock(), [0], [0]
    full = threading.Barrier(3)

    def work() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        full.wait(WAIT)
        with lock:
            now[0] -= 1

    with Together(workers, limit=3) as group:
        for wait in [group.start(work) for _ in range(9)]:
            wait()
    assert most == [3]


def test_what_goes_wrong_outside_ends_the_rest(workers: Workers) -> None:
    begun = threading.Event()
    unanswered: Future[int] = Future()
    done: List[str] = []

    def submit() -> Future[int]:
        begun.set()
        return unanswered

    def interrupted() -> None:
        with Together(workers, limit=1) as group:
            waiting.append(group.start(lambda: group.call(submit)))
            waiting.append(group.start(lambda: done.append("begun after the end")))
            assert begun.wait(WAIT)
            raise KeyboardInterrupt

    waiting: List[Callable[[], Any]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert unanswered.cancelled()
    with pytest.raises(RequestCancelled):
        waiting[1]()
    assert done == []


def test_in_the_context_of_who_starts_it(workers: Workers) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="no")
    variable.set("yes")
    with Together(workers) as group:
        assert group.start(variable.get)() == "yes"


def test_where_no_thread_can_be_had_the_work_is_done_here() -> None:
    none = Workers("mcpsync-test-call", 1)
    none.stop()
    with Together(none) as group:
        first = group.start(threading.get_ident, "a")
        assert [first(), group.start(threading.get_ident, "a")()] == [threading.get_ident()] * 2


# -- a host --------------------------------------------------------------------------------------------------------


class Working:
    """Servers whose tool ``work`` answers when the test says so, and that note what happens."""

    def __init__(self) -> None:
        self.seen: List[str] = []
        self.changed = threading.Condition()
        self.answers: Dict[str, Callable[[], None]] = {}

    def server(self, name: str) -> StreamServer:
        def serve(client: ServerEnd) -> None:
            for data in client:
                self._take(name, json.loads(data), client)

        return StreamServer(serve, server_name=name)

    def _take(self, name: str, message: Dict[str, Any], client: ServerEnd) -> None:
        def answer(result: Any) -> None:
            client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

        method = message["method"]
        if method == "initialize":
            info = {"name": name, "version": "1"}
            answer({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            answer({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            text = name + message["params"]["arguments"]["text"]
            with self.changed:
                self.answers[text] = lambda: answer({"content": [{"type": "text", "text": "did " + text}]})
                self.seen.append(text)
                self.changed.notify_all()
        elif method == "notifications/cancelled":
            with self.changed:
                self.seen.append("cancelled")
                self.changed.notify_all()

    def until(self, *seen: str) -> None:
        """Return when these were seen."""
        with self.changed:
            assert self.changed.wait_for(lambda: set(seen) <= set(self.seen), WAIT), self.seen

    def answer(self, *texts: str) -> None:
        for text in texts:
            self.until(text)
            self.answers[text]()


def call(server: str, text: str) -> Dict[str, Any]:
    function = {"name": "mcp__%s__work" % server, "arguments": json.dumps({"text": text})}
    return {"id": server + text, "type": "function", "function": function}


def host_of(working: Working, parallel: bool = True, **options: Any) -> Host:
    host = Host(Config({}), protocol="2025-06-18", **{"approve": lambda _: "once", **options})
    entries = {
        name: Entry(ServerConfig(name, transport="memory", supports_parallel=parallel), factory=working.server(name))
        for name in ("a", "b")
    }
    host._fleet.change(lambda old: entries)
    return host


def begun(host: Host, calls: List[Any], **options: Any) -> Callable[[], Any]:
    """A turn on a thread of its own; gives what waits for its messages."""
    results: List[Any] = []
    thread = threading.Thread(target=lambda: results.append(host.dispatch_all("openai", calls, **options)))
    thread.start()

    def messages() -> Any:
        thread.join(WAIT)
        assert not thread.is_alive()
        return [(message["tool_call_id"], message["content"]) for message in results[0]]

    return messages


def test_a_turn_is_made_at_the_same_time_and_answered_in_its_order() -> None:
    working = Working()
    with host_of(working) as host:
        messages = begun(host, [call("a", "1"), call("b", "1"), call("nobody", "1"), call("a", "2")])
        working.until("a1", "b1", "a2")
        working.answer("a2", "b1", "a1")
        answers = messages()
    assert [id for id, _ in answers] == ["a1", "b1", "nobody1", "a2"]
    assert [answers[at][1] for at in (0, 1, 3)] == ["did a1", "did b1", "did a2"]
    assert answers[2][1].startswith("Error: there is no tool 'mcp__nobody__work'")


def test_calls_of_a_server_that_takes_one_at_a_time_keep_their_order() -> None:
    working = Working()
    with host_of(working, parallel=False) as host:
        messages = begun(host, [call("a", "1"), call("a", "2"), call("b", "1"), call("a", "3")])
        working.until("a1", "b1")
        assert "a2" not in working.seen
        working.answer("a1", "a2", "a3", "b1")
        assert [text for _, text in messages()] == ["did a1", "did a2", "did b1", "did a3"]
    assert [text for text in working.seen if text[0] == "a"] == ["a1", "a2", "a3"]


def test_a_call_that_is_late_costs_no_other_one() -> None:
    working = Working()
    with host_of(working) as host:
        messages = begun(host, [call("a", "1"), call("b", "1")], timeout=0.2)
        working.answer("b1")
        (_, late), (_, done) = messages()
    assert late.endswith("; the call was cancelled")
    assert done == "did b1"


def test_who_approves_is_asked_in_order_on_the_thread_that_waits() -> None:
    working = Working()
    asked: List[Any] = []

    def approve(request: ApprovalRequest) -> str:
        if request.server == "b":
            working.answer("a1")  # the one before goes on meanwhile
        asked.append((request.server, threading.current_thread()))
        return "once"

    with host_of(working, approve=approve) as host:
        messages = begun(host, [call("a", "1"), call("b", "1")])
        working.answer("b1")
        assert [text for _, text in messages()] == ["did a1", "did b1"]
    (first, one), (second, other) = asked
    assert (first, second) == ("a", "b")
    assert one is other


def test_an_interrupt_ends_all_and_the_servers_are_told() -> None:
    working = Working()

    def approve(request: ApprovalRequest) -> str:
        if request.server == "b":
            working.until("a1")
            raise KeyboardInterrupt
        return "once"

    with host_of(working, approve=approve) as host:
        with pytest.raises(KeyboardInterrupt):
            host.dispatch_all("openai", [call("a", "1"), call("b", "1")])
        working.until("cancelled")
    assert "b1" not in working.seen


def test_where_callbacks_need_the_thread_that_waits_calls_stay_on_it() -> None:
    working = Working()
    with host_of(working, callbacks="caller") as host:
        messages = begun(host, [call("a", "1"), call("b", "1")])
        working.until("a1")
        assert not any(thread.name == "mcpsync-host-call" for thread in threading.enumerate())
        assert "b1" not in working.seen
        working.answer("a1", "b1")
        assert [text for _, text in messages()] == ["did a1", "did b1"]


def test_what_is_no_call_is_said_before_any_is_made() -> None:
    working = Working()
    with host_of(working) as host:
        with pytest.raises(TypeError, match="no OpenAI tool call"):
            host.dispatch_all("openai", [call("a", "1"), {"id": "x"}])
        assert host.dispatch_all("openai", []) == []
    assert working.seen == []


def test_a_host_that_is_closed_meanwhile_says_so() -> None:
    from mcpsync.errors import ClientClosed

    working = Working()
    raised: List[BaseException] = []
    host = host_of(working).open()

    def turn() -> None:
        try:
            host.dispatch_all("openai", [call("a", "1"), call("b", "1")])
        except ClientClosed as error:
            raised.append(error)

    thread = threading.Thread(target=turn)
    thread.start()
    working.until("a1", "b1")
    host.close()
    thread.join(WAIT)
    assert len(raised) == 1
    assert not any(thread.name == "mcpsync-host-call" for thread in threading.enumerate())
