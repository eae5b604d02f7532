"""Tasks of the extension ``io.modelcontextprotocol/tasks``: waited for, handed over, stored, and told of wrongly."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

import mcpsync
from mcpsync import (
    ClientClosed,
    ConnectionLost,
    InvalidMessage,
    InvalidParams,
    RequestCancelled,
    RequestTimeout,
    RpcError,
    ToolError,
)
from mcpsync.extensions import tasks
from mcpsync.extensions.tasks.state import read
from tests.faults.watch import took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Modern
from tests.peers.scripted import peer

pytestmark = pytest.mark.own_methods("tasks/get", "tasks/update", "tasks/cancel")

Message = Dict[str, Any]
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "a report"}]}}
NAME = {
    "method": "elicitation/create",
    "params": {
        "message": "who are you?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


class Tasks(Modern):
    """A tool call gives the task ``t1``, which goes through the states of a script; the last one stays.

    :ivar seed: what the call is answered with beside the type
    :ivar states: an object, an exception's JSON, or a function of the exchange, for each ``tasks/get``
    :ivar got: all requests but the probe
    """

    def __init__(self, *states: Any) -> None:
        super().__init__(
            self.create,
            tasks__get=self.get,
            tasks__update=self.update,
            tasks__cancel=self.cancel,
        )
        self.seed: Message = {"taskId": "t1", "status": "working", "ttlMs": 60000, "pollIntervalMs": 0}
        self.states: List[Any] = list(states) or [DONE]
        self.got: List[Message] = []
        self.headers: List[Any] = []
        self.asked = threading.Event()
        self.cancels: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.update_states: List[Any] = []

    def note(self, exchange: Exchange, message: Message) -> None:
        self.got.append(message)
        self.headers.append((message["method"], exchange.request.headers.get("mcp-name")))

    def methods(self) -> List[str]:
        return [message["method"] for message in self.got]

    def create(self, exchange: Exchange, message: Message) -> None:
        self.note(exchange, message)
        exchange.result({"resultType": "task", **self.seed})

    def get(self, exchange: Exchange, message: Message) -> None:
        self.note(exchange, message)
        self.asked.set()
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        self.play(state, exchange, message)

    def update(self, exchange: Exchange, message: Message) -> None:
        self.note(exchange, message)
        self.play(self.update_states.pop(0) if self.update_states else None, exchange, message)

    def cancel(self, exchange: Exchange, message: Message) -> None:
        self.note(exchange, message)
        exchange.result({"resultType": "complete"})
        self.cancels.put(message["params"]["taskId"])

    def play(self, state: Any, exchange: Exchange, message: Message) -> None:
        if callable(state):
            state(exchange)
        elif state is None:
            exchange.result({"resultType": "complete"})
        elif "code" in state:
            exchange.respond(200, {"jsonrpc": "2.0", "id": message["id"], "error": state})
        else:
            exchange.result({"resultType": "complete", **self.seed, **state})


def drop(exchange: Exchange) -> None:
    exchange.close()


def busy(exchange: Exchange) -> None:
    exchange.respond(503, b"try later", "text/plain")


@pytest.fixture(autouse=True)
def in_a_hurry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may be asked more often than anybody should."""
    if "bounds" not in request.node.name:
        monkeypatch.setattr("mcpsync.extensions.tasks.state._SHORTEST_INTERVAL", 0.001)


Ask = Callable[..., str]
WAYS: Dict[str, Ask] = {
    "waited for": lambda client, **more: client.call_tool("work", {"a": 1}, **more).text,
    "submitted": lambda client, **more: client.submit("work", {"a": 1}, **more).result(10).text,
    "handle": lambda client, timeout=10: tasks.submit(client, "work", {"a": 1}).result(timeout).text,
}


@pytest.fixture(params=sorted(WAYS))
def ask(request: pytest.FixtureRequest) -> Ask:
    return WAYS[request.param]


@contextmanager
def serving(*states: Any, **options: Any) -> Iterator[Any]:
    server = Tasks(*states)
    with HttpPeer(server) as at, mcpsync.connect(at.url, extensions=tasks.EXTENSION, **options) as client:
        yield server, client


def test_a_call_waits_for_its_task(ask: Ask) -> None:
    with serving({}, {"statusMessage": "half"}, DONE) as (server, client):
        assert ask(client) == "a report"
        assert server.methods() == ["tools/call", "tasks/get", "tasks/get", "tasks/get"]
        for message in server.got:
            assert message["params"]["_meta"][CAPABILITIES]["extensions"] == {tasks.NAME: {}}
        assert server.headers == [("tools/call", "work")] + 3 * [("tasks/get", "t1")]
        assert server.cancels.empty()


def test_a_task_may_be_over_before_it_is_asked_after(ask: Ask) -> None:
    with serving(DONE) as (server, client):
        server.seed["status"] = "completed"
        server.seed["pollIntervalMs"] = 60_000
        assert ask(client, timeout=10) == "a report"


def test_an_answer_that_tells_of_a_task_may_say_that_it_is_one(ask: Ask) -> None:
    with serving({"resultType": "task", **DONE}) as (_, client):
        assert ask(client) == "a report"


def test_questions_of_a_task_are_put_once(ask: Ask) -> None:
    asked: List[str] = []
    first = {"status": "input_required", "inputRequests": {"q1": NAME}}
    second = {"status": "input_required", "inputRequests": {"q1": NAME, "q2": NAME}}

    def answer(request: Any) -> Message:
        asked.append(request.message)
        return {"name": "Ada %d" % len(asked)}

    with serving(first, first, second, DONE, elicitation=answer) as (server, client):
        assert ask(client) == "a report"
        updates = [message["params"] for message in server.got if message["method"] == "tasks/update"]
        told = [{key: answer["content"] for key, answer in params["inputResponses"].items()} for params in updates]
        assert told == [{"q1": {"name": "Ada 1"}}, {"q2": {"name": "Ada 2"}}]
        assert {params["taskId"] for params in updates} == {"t1"}
        assert ("tasks/update", "t1") in server.headers
        assert len(asked) == 2


def test_an_answer_that_got_lost_is_sent_again_and_not_asked_for_again(ask: Ask) -> None:
    asked: List[Any] = []
    first = {"status": "input_required", "inputRequests": {"q1": NAME}}
    with serving(first, first, DONE, elicitation=lambda request: asked.append(request) or {"name": "Ada"}) as (
        server,
        client,
    ):
        server.update_states = [drop]
        assert ask(client) == "a report"
        assert server.methods().count("tasks/update") == 2
        assert len(asked) == 1


def test_a_question_that_nobody_answers_ends_the_call_and_its_task() -> None:
    for ask in (WAYS["waited for"], WAYS["submitted"]):
        with serving({"status": "input_required", "inputRequests": {"q1": NAME}}) as (server, client):
            with pytest.raises(RpcError, match="which was not offered"):
                ask(client)
            assert server.cancels.get(timeout=10) == "t1"


def test_how_tasks_fail(ask: Ask) -> None:
    error = {"code": -32050, "message": "the moon is full", "data": {"phase": 4}}
    with serving({"status": "failed", "error": error}) as (server, client):
        with pytest.raises(RpcError, match="the moon is full") as caught:
            ask(client)
        assert (caught.value.code, caught.value.data) == (-32050, {"phase": 4})
    with (
        serving({"status": "failed", "statusMessage": "out of ink"}) as (_, client),
        pytest.raises(RpcError, match="out of ink"),
    ):
        ask(client)
    with (
        serving({"status": "cancelled", "statusMessage": "by the owner"}) as (_, client),
        pytest.raises(tasks.TaskCancelled, match="was cancelled: by the owner"),
    ):
        ask(client)
    failing = {"content": [{"type": "text", "text": "no ink"}], "isError": True}
    with (
        serving({"status": "completed", "result": failing}) as (server, client),
        pytest.raises(ToolError, match="no ink"),
    ):
        ask(client)
    with serving({"code": -32602, "message": "Task not found"}) as (server, client):
        with pytest.raises(InvalidParams, match="does not know the task 't1'"):
            ask(client)
        assert server.cancels.empty()


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        ({"status": "completed"}, "has no result"),
        ({"status": "completed", "result": ["x"]}, "has no result"),
        ({"status": "completed", "result": {"resultType": "input_required"}}, "no complete one"),
        ({"status": "asleep"}, "unknown status: "),
        ({"status": {"a": 1}}, "unknown status: "),
        ({"taskId": "t2"}, "tells of 't2'"),
        ({"taskId": 7}, "no id that is a string"),
        ({"status": "input_required", "inputRequests": ["q"]}, "inputRequests that are no object"),
        ({"status": "input_required", "inputRequests": {"q": {"method": "tools/call"}}}, "no client answers"),
    ],
)
def test_what_makes_no_sense_ends_the_call(ask: Ask, state: Message, complaint: str) -> None:
    with serving(state) as (_, client), pytest.raises(InvalidMessage, match=complaint):
        ask(client)


@pytest.mark.parametrize("seed", [{"taskId": 7}, {"taskId": ""}, {"status": "asleep"}, {"status": None}])
def test_a_task_that_is_none(ask: Ask, seed: Message) -> None:
    with serving() as (server, client):
        server.seed.update(seed)
        with pytest.raises(InvalidMessage):
            ask(client)
        assert server.methods() == ["tools/call"]


def test_endless_questions_have_an_end(ask: Ask) -> None:
    many = {"status": "input_required", "inputRequests": {"q%d" % number: NAME for number in range(101)}}
    with (
        serving(many, elicitation=lambda request: pytest.fail("it was asked")) as (_, client),
        pytest.raises(mcpsync.ProtocolError, match="more than 100 times"),
    ):
        ask(client)


def test_other_methods_cannot_become_tasks() -> None:
    server = Tasks()
    server.special["resources/read"] = server.create
    with (
        HttpPeer(server) as at,
        mcpsync.connect(at.url, extensions=tasks.EXTENSION) as client,
        pytest.raises(InvalidMessage, match="cannot become a task"),
    ):
        client.read_resource("x://y")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(0, 0.05), (-5, 0.05), (1e300, 600), (2500, 2.5), (None, 1), ("5", 1), (True, 1), (float("nan"), 0.05)],
)
def test_the_interval_has_bounds(said: Any, seconds: float) -> None:
    assert read({"taskId": "t", "status": "working", "pollIntervalMs": said}).interval == seconds


def test_what_a_status_has() -> None:
    status = read(
        {
            "taskId": "t",
            "status": "working",
            "statusMessage": "half",
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": 7,
            "ttlMs": 1500,
        }
    )
    assert status[:7] == ("t", "working", "half", "2026-01-01T00:00:00Z", None, 1.5, 1)
    assert not status.over and status._replace(status="failed").over
    assert read({"taskId": "t", "status": "working", "ttlMs": -1}).ttl is None


def test_failures_on_the_way_pass(ask: Ask) -> None:
    with serving(drop, drop, busy, {}, drop, drop, DONE) as (_, client):
        assert ask(client) == "a report"


def test_a_server_that_stays_broken_is_given_up(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.setattr("mcpsync.extensions.tasks.following._LONGEST_PAUSE", 0.01)
    with serving(busy) as (server, client):
        with pytest.raises(mcpsync.HttpError):
            ask(client)
        assert server.methods().count("tasks/get") == 11


@pytest.mark.parametrize("interval", [0, 60_000, 1e300])
@pytest.mark.parametrize("way", ["waited for", "submitted"])
def test_the_time_of_a_call_is_the_time_of_its_task(way: str, interval: float) -> None:
    with serving({}) as (server, client):
        server.seed["pollIntervalMs"] = interval
        with took() as measured, pytest.raises(RequestTimeout):
            WAYS[way](client, timeout=0.2)
        assert measured.seconds < 5
        assert server.cancels.get(timeout=10) == "t1"


def test_the_end_of_a_wait_does_not_end_the_task_of_a_handle() -> None:
    with serving({}) as (server, client):
        handle = tasks.submit(client, "work")
        with pytest.raises(RequestTimeout, match="it goes on"):
            handle.result(0.1)
        assert server.cancels.empty()
        server.states = [DONE]
        assert handle.result(10).text == handle.result(0).text == "a report"
        assert handle.cancel() is True
        assert server.cancels.get(timeout=10) == "t1"


def test_a_call_that_is_cancelled_cancels_its_task() -> None:
    with serving({}) as (server, client):
        call = client.submit("work")
        assert server.asked.wait(10)
        assert call.cancel()
        with pytest.raises(RequestCancelled):
            call.result(10)
        assert server.cancels.get(timeout=10) == "t1"
        assert server.cancels.empty()


def test_a_cancel_and_the_end_of_the_task_have_one_outcome() -> None:
    for _ in range(20):
        with serving(DONE) as (server, client):
            outcomes: List[Any] = []
            call = client.submit("work")
            call.add_done_callback(outcomes.append)
            server.asked.wait(10)
            won = call.cancel()
            if won:
                with pytest.raises(RequestCancelled):
                    call.result(10)
            else:
                assert call.result(10).text == "a report"
            client.call_tool("work")
        assert outcomes == [call]


def test_ctrl_c_cancels_the_task(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(
        "import sys, mcpsync\n"
        "from mcpsync.extensions import tasks\n"
        "with mcpsync.connect(sys.argv[1], extensions=tasks.EXTENSION) as client:\n"
        "    try:\n"
        "        client.call_tool('work')\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
    )
    server = Tasks({})
    with HttpPeer(server) as at:
        process = subprocess.Popen([sys.executable, str(program), at.url], stdout=subprocess.PIPE)
        try:
            assert server.asked.wait(30)
            process.send_signal(2)
            assert process.communicate(timeout=30)[0].split() == [b"interrupted"]
        finally:
            process.kill()
            process.wait()
        assert server.cancels.get(timeout=10) == "t1"


def test_what_a_handle_tells_and_how_it_is_stored() -> None:
    half = {"statusMessage": "half"}
    with serving({}, half, half, DONE) as (server, client):
        handle = tasks.submit(client, "work", {"a": 1}, meta={"com.example/trace": "t"})
        assert server.got[0]["params"]["_meta"]["com.example/trace"] == "t"
        assert (handle.id, handle.tool) == ("t1", "work")
        assert "t1" not in repr(handle)
        status = handle.status()
        assert status is not None and (status.id, status.status, status.ttl) == ("t1", "working", 60)
        stored = json.dumps(handle.reference())
        told: List[Any] = []
        again = tasks.resume(client, json.loads(stored))
        assert again.result(10, on_status=lambda status: told.append((status.status, status.message))).text
        assert told == [("working", "half"), ("completed", None)]
        assert json.loads(json.dumps(again.reference()))["task"] == "t1"
        assert tasks.resume(client, again.reference()).result(0).text == "a report"


def test_a_server_may_answer_at_once() -> None:
    server = Modern()
    with HttpPeer(server) as at, mcpsync.connect(at.url, extensions=tasks.EXTENSION) as client:
        handle = tasks.submit(client, "work")
        assert (handle.id, handle.status(), handle.cancel()) == (None, None, False)
        assert handle.result().text == "done"
        assert tasks.resume(client, handle.reference()).result().text == "done"


@pytest.mark.parametrize("reference", [None, [], {}, {"task": "t"}, {"tool": "x"}, {"tool": "x", "task": 7}])
def test_what_is_no_reference(reference: Any) -> None:
    with pytest.raises(ValueError, match="no reference of a task"):
        tasks.resume(mcpsync.Client(["true"]), reference)


def test_a_handle_cannot_cancel_what_the_server_does_not_know() -> None:
    with serving() as (server, client):
        server.special["tasks/cancel"] = lambda exchange, message: server.play(
            {"code": -32602, "message": "no such task"}, exchange, message
        )
        assert tasks.submit(client, "work").cancel() is False


def test_threads_that_wait_for_one_handle_put_its_questions_once() -> None:
    asked: List[Any] = []
    first = {"status": "input_required", "inputRequests": {"q1": NAME}}
    with serving(first, {}, DONE, elicitation=lambda request: asked.append(request) or {"name": "Ada"}) as (_, client):
        handle = tasks.submit(client, "work")
        texts: List[str] = []
        threads = [threading.Thread(target=lambda: texts.append(handle.result(10).text)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert texts == 3 * ["a report"] and len(asked) == 1


def test_a_client_that_is_closed_ends_the_wait_for_a_handle() -> None:
    with serving({}) as (server, client):
        server.seed["pollIntervalMs"] = 60_000
        handle = tasks.submit(client, "work")
        errors: List[Optional[BaseException]] = []

        def wait() -> None:
            try:
                handle.result()
            except ClientClosed as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        client.close()
        thread.join(10)
        assert len(errors) == 1


def test_without_the_extension_a_task_is_invalid_and_nothing_is_declared() -> None:
    server = Tasks()
    with HttpPeer(server) as at, mcpsync.connect(at.url) as client:
        with pytest.raises(InvalidMessage, match="unknown resultType"):
            client.call_tool("work")
        assert "extensions" not in server.got[0]["params"]["_meta"][CAPABILITIES]


def test_over_stdio_with_questions_and_a_server_that_dies(tmp_path: Path) -> None:
    def work(server, request, a):
        return {"resultType": "task", "taskId": "t1", "status": "working", "pollIntervalMs": 0, "ttlMs": None}

    def get(server, request, taskId):
        if "name" in server.memory:
            result = {"content": [{"type": "text", "text": "hello " + server.memory["name"]}]}
            return {"taskId": taskId, "status": "completed", "result": result}
        params = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
        asks = {"q": {"method": "elicitation/create", "params": params}}
        return {"taskId": taskId, "status": "input_required", "inputRequests": asks}

    def update(server, request, taskId, inputResponses):
        name = server.memory["name"] = inputResponses["q"]["content"]["name"]
        if name == "Brutus":
            import os

            os._exit(3)
        return {}

    server = peer(tmp_path, work, handlers={"tasks/get": get, "tasks/update": update})
    names = ["Ada", "Bob", "Brutus"]
    for callbacks in ("pool", "caller"):
        options: Any = {"elicitation": lambda request: {"name": names.pop(0)}, "callbacks": callbacks}
        with mcpsync.connect(server.command, extensions=tasks.EXTENSION, **options) as client:
            ask = WAYS["handle" if callbacks == "caller" else "waited for"]
            assert ask(client).startswith("hello")
    with (
        mcpsync.connect(server.command, extensions=tasks.EXTENSION, **options) as client,
        pytest.raises(ConnectionLost),
    ):
        client.call_tool("work", {"a": 1})


def test_begun_in_one_process_and_finished_in_another(tmp_path: Path) -> None:
    begin = tmp_path / "begin.py"
    begin.write_text(
        "import json, sys, mcpsync\n"
        "from mcpsync.extensions import tasks\n"
        "with mcpsync.connect(sys.argv[1], extensions=tasks.EXTENSION) as client:\n"
        "    handle = tasks.submit(client, 'work', {'a': 1})\n"
        "    with open(sys.argv[2], 'w') as file:\n"
        "        json.dump(handle.reference(), file)\n"
    )
    finish = tmp_path / "finish.py"
    finish.write_text(
        "import json, sys, mcpsync\n"
        "from mcpsync.extensions import tasks\n"
        "with open(sys.argv[2]) as file, mcpsync.connect(sys.argv[1], extensions=tasks.EXTENSION) as client:\n"
        "    print(tasks.resume(client, json.load(file)).result(20).text)\n"
    )
    server = Tasks({}, DONE)
    with HttpPeer(server) as at:
        outputs = [
            subprocess.run(
                [sys.executable, str(program), at.url, str(tmp_path / "task.json")],
                stdout=subprocess.PIPE,
                timeout=60,
                check=True,
            ).stdout
            for program in (begin, finish)
        ]
    assert outputs == [b"", b"a report\n"]
    assert server.methods() == ["tools/call", "tasks/get", "tasks/get"]
