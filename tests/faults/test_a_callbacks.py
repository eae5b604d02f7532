"""A9, A11, A12: where user code runs, in what order, and what it may do there."""

from __future__ import annotations

import concurrent.futures
import json
import queue
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import mcpsync
from mcpsync import Limits, Timeouts
from tests.faults.watch import Seen
from tests.peers.scripted import peer

ERAS = ["legacy", "modern"]
FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"method": "elicitation/create", "params": FORM}
QUESTIONS = {"questions": {"q": ASK}}


def elicits(client: mcpsync.Client, era: str, **options: Any) -> Any:
    """A call in which the server asks the user."""
    name, arguments = ("ask", ASK) if era == "legacy" else ("rounds", QUESTIONS)
    return client.call_tool(name, arguments, **options)


def submits(client: mcpsync.Client, era: str, **options: Any) -> Any:
    name, arguments = ("ask", ASK) if era == "legacy" else ("rounds", QUESTIONS)
    return client.submit(name, arguments, **options)


def answered(text: str, era: str) -> Dict[str, Any]:
    """What the server got for its question."""
    answer: Dict[str, Any] = json.loads(text)
    return answer["result"] if era == "legacy" and "result" in answer else answer.get("q", answer)


class MainLoop:
    """A user's loop that only this thread runs."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def __call__(self, callback: Callable[[], None]) -> None:
        self.waiting.put(callback)

    def pump(self, until: Callable[[], bool], seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end
            with suppress(queue.Empty):  # what is waited for may be told elsewhere
                self.waiting.get(timeout=0.02)()


# -- A9 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_a9_a_dispatcher_that_only_pumps_on_the_main_thread(tmp_path: Path, era: str) -> None:
    loop = MainLoop()
    ran: List[str] = []
    threads = set()

    def note(what: str) -> None:
        ran.append(what)
        threads.add(threading.get_ident())

    def answer(request: Any) -> bool:
        note("asked")
        return True

    with mcpsync.connect(
        peer(tmp_path, era=era).command,
        callbacks=loop,
        elicitation=answer,
        on_state=lambda state: note("state " + state),
        on_notification=lambda method, params: note("notification"),
    ) as client:
        calls = [
            client.submit(
                "flood",
                {"count": 20, "progress": True},
                on_progress=lambda p, number=number: note("%d: %g" % (number, p.progress)),  # type: ignore[misc]
            )
            for number in range(3)
        ]
        for call in calls:
            call.add_done_callback(lambda call: note("done"))
        asking = submits(client, era)
        assert concurrent.futures.wait(calls, 10).not_done == set()
        client.call_tool("notify", {"method": "notifications/x", "count": 5})
        assert ran == []
        loop.pump(asking.done)
        loop.pump(lambda: ran.count("done") == 3 and ran.count("notification") == 5)
        assert answered(asking.result().text, era) == {"action": "accept", "content": {}}
    loop.pump(lambda: "state closed" in ran)
    assert threads == {threading.get_ident()}
    for number in range(3):
        assert [each for each in ran if each.startswith("%d: " % number)] == [
            "%d: %d" % (number, step) for step in range(1, 21)
        ]
    states = [each for each in ran if each.startswith("state")]
    assert states == ["state connecting", "state ready", "state closed"]


@pytest.mark.parametrize("era", ERAS)
def test_a9_a_call_on_the_thread_that_the_loop_names_runs_what_the_loop_has_not_come_to(
    tmp_path: Path, era: str
) -> None:
    """The UI thread blocks in a call, while a handler for another one waits in the UI's queue: no deadlock."""
    loop = MainLoop()
    loop.thread = threading.get_ident()  # type: ignore[attr-defined]
    ran: List[str] = []

    def answer(request: Any) -> bool:
        ran.append("asked")
        return True

    with mcpsync.connect(peer(tmp_path, era=era).command, callbacks=loop, elicitation=answer) as client:
        progress = client.submit("flood", {"count": 3, "progress": True}, on_progress=lambda p: ran.append("progress"))
        asking = submits(client, era)
        progress.result(10)
        start = time.monotonic()
        while not loop.waiting.qsize() > 1:
            assert time.monotonic() - start < 10
            time.sleep(0.001)  # the queue is the user's, and tells nobody
        assert ran == []
        client.call_tool("sleep", {"seconds": 0.2}, timeout=5)
        assert ran == ["progress"] * 3 + ["asked"]
        assert answered(asking.result(5).text, era) == {"action": "accept", "content": {}}
        assert elicits(client, era, timeout=5)
        loop.pump(loop.waiting.empty)  # tokens of what has been run: they find nothing
        assert ran == ["progress"] * 3 + ["asked"] * 2


def test_a9_a_dispatcher_that_refuses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def closed(callback: Callable[[], None]) -> None:
        raise RuntimeError("main thread is not in main loop")

    ran: List[Any] = []
    with mcpsync.connect(
        peer(tmp_path, era="legacy").command, callbacks=closed, elicitation=ran.append, on_state=ran.append
    ) as client:
        refused = answered(elicits(client, "legacy", timeout=5).text, "legacy")
        assert "busy" in refused["error"]["message"]
        future = client.submit("echo", {"text": "x"})
        future.add_done_callback(ran.append)
        assert future.result(5).text == "x"
    assert ran == []
    assert "the dispatcher refused a callback" in caplog.text


# -- A11 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize("era", ERAS)
def test_a11_user_code_never_runs_on_a_thread_of_the_connection(tmp_path: Path, era: str, mode: str) -> None:
    threads, ended = Seen(), Seen()

    def note(*arguments: Any) -> bool:
        threads(threading.current_thread().name)
        return True

    def note_end(future: Any) -> None:
        note()
        ended(future)

    server = peer(tmp_path, era=era)
    with mcpsync.connect(
        server.command,
        name="peer",
        callbacks=mode,
        elicitation=note,
        on_state=note,
        on_notification=note,
        on_tools_changed=note,
        debounce=0.01,
        backoff=mcpsync.Backoff((0.01,)),
    ) as client:
        elicits(client, era, on_progress=note)
        done = [submits(client, era, on_progress=note), client.submit("echo"), client.submit("silent", timeout=0.05)]
        done.append(client.submit("silent"))
        for future in done:
            future.add_done_callback(note_end)
        client.call_tool("changed")
        client.call_tool("flood", {"count": 3, "progress": True}, on_progress=note)
        done[-1].cancel()
        concurrent.futures.wait(done, 10)
        done[1].add_done_callback(note_end)
        lost = client.submit("die")
        lost.add_done_callback(note_end)
        lost.exception(10)
        threads.wait_count(15)
        ended.wait_count(6)  # what is late for the pool of a client that is closed runs where its call ended
    pool = {"mcpsync-peer-" + role for role in ("callback", "handler")}
    allowed = pool if mode == "pool" else {*pool, threading.current_thread().name}
    assert set(threads.items) <= allowed


def test_a11_a_listing_in_the_background_runs_no_callbacks(tmp_path: Path) -> None:
    """The library waits for a listing of its own, and nobody else waits in a call: the pool runs what there is."""
    threads = Seen()
    server = peer(tmp_path, handlers={"tools/list": "silent_method"})
    options: Dict[str, Any] = {"callbacks": "caller", "on_tools_changed": lambda *_: None, "debounce": 0.01}
    with mcpsync.connect(server.command, name="peer", **options) as client:
        done = client.submit("echo")
        client.call_tool("changed")
        server.wait_for("tools/list")
        done.add_done_callback(lambda future: threads(threading.current_thread().name))
        threads.wait_count(1)
    assert threads.items == ["mcpsync-peer-callback"]


@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize("era", ERAS)
def test_a11_callbacks_that_call_the_client_again(tmp_path: Path, era: str, mode: str) -> None:
    texts = Seen()
    deep: List[int] = []

    def again(argument: Any) -> Dict[str, Any]:
        texts(client.call_tool("echo", {"text": "again"}, timeout=5).text)
        texts(client.submit("echo", {"text": "later"}, timeout=5).result().text)
        if len(deep) < 3:
            deep.append(1)
            elicits(client, era, timeout=5)  # which asks again, in the middle of the answer
        return {}

    with mcpsync.connect(peer(tmp_path, era=era).command, callbacks=mode, elicitation=again) as client:
        elicits(client, era, timeout=10, on_progress=again)
        client.call_tool("flood", {"count": 1, "progress": True}, on_progress=again)
        future = client.submit("echo")
        future.add_done_callback(again)
        if mode == "caller":  # somebody has to wait, or the pool runs it
            client.call_tool("sleep", {"seconds": 0.05})
        texts.wait_count(12)
    assert texts.items.count("again") == texts.items.count("later") == 6
    assert len(deep) == 3


class Stop(BaseException):
    """As pytest's own failures, or GreenletExit."""


@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize(
    "error", [ValueError("secret of the handler"), SystemExit(3), Stop("now"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("era", ERAS)
def test_a11_callbacks_that_raise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, era: str, error: BaseException, mode: str
) -> None:
    """The error is told to the server and logged here; one that is meant for the thread ends a call on that thread."""

    def fail(argument: Any) -> Any:
        raise error

    server = peer(tmp_path, era=era)
    limits = Limits(handlers=1, callbacks=1, submitted=1)
    with mcpsync.connect(server.command, name="peer", callbacks=mode, elicitation=fail, limits=limits) as client:
        ends_the_call = mode == "caller" and not isinstance(error, Exception)
        for _ in range(3):
            if ends_the_call:
                with pytest.raises(type(error)):
                    elicits(client, era, timeout=5)
            elif era == "legacy":
                told = answered(elicits(client, era, timeout=5).text, era)["error"]["message"]
                assert "handler failed: %s" % type(error).__name__ in told
            else:
                with pytest.raises(mcpsync.RpcError, match="handler failed: %s" % type(error).__name__):
                    elicits(client, era, timeout=5)
        if not ends_the_call:
            # what is meant for the thread is logged by the thread, before it does the next thing
            assert "failed" in caplog.text and type(error).__name__ in caplog.text
            assert client.call_tool("flood", {"count": 2, "progress": True}, on_progress=fail).text == "flooded"
        future = client.submit("echo", {"text": "x"})
        future.add_done_callback(fail)
        assert future.result(5).text == "x"
        if mode == "pool":
            ran = Seen()
            future.add_done_callback(ran)
            ran.wait_count(1)  # the one thread of the pool has outlived all that
            assert "a callback" in caplog.text
        assert client.call_tool("echo", {"text": "y"}).text == "y"
    assert server.alive() == []


@pytest.mark.parametrize("era", ERAS)
def test_a11_callbacks_that_block_hold_up_no_call(tmp_path: Path, era: str) -> None:
    free, blocked = threading.Event(), Seen()

    def block(*arguments: Any) -> bool:
        blocked(threading.get_ident())
        free.wait(20)
        return True

    with mcpsync.connect(
        peer(tmp_path, era=era).command, elicitation=block, on_notification=block, limits=Limits(callbacks=2)
    ) as client:
        client.call_tool("notify", {"method": "notifications/x", "count": 20_000}, timeout=20)
        asking = submits(client, era)
        flooded = client.call_tool("flood", {"count": 100, "progress": True}, on_progress=block, timeout=5)
        assert flooded.text == "flooded"
        future = client.submit("echo", {"text": "x"})
        future.add_done_callback(block)
        assert future.result(5).text == "x"
        blocked.wait_count(3)
        for number in range(50):
            assert client.call_tool("echo", {"text": str(number)}, timeout=5).text == str(number)
        free.set()
        assert answered(asking.result(10).text, era)["action"] == "accept"


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_a11_close_does_not_wait_for_callbacks_that_block(tmp_path: Path, era: str) -> None:
    free, blocked = threading.Event(), Seen()

    def block(*arguments: Any) -> bool:
        blocked(1)
        free.wait(20)
        return True

    client = mcpsync.connect(peer(tmp_path, era=era).command, elicitation=block, on_notification=block)
    client.call_tool("notify", {"method": "notifications/x"})
    asking = submits(client, era)
    failed: List[BaseException] = []

    def ask() -> None:
        try:
            elicits(client, era)
        except mcpsync.McpError as error:
            failed.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    blocked.wait_count(3)
    start = time.monotonic()
    client.close()
    asker.join(5)
    assert time.monotonic() - start < 1.5
    assert [type(error) for error in failed] == [mcpsync.ClientClosed]
    assert type(asking.exception(0)) is mcpsync.ClientClosed
    free.set()


def test_a11_done_callbacks_are_never_lost(tmp_path: Path) -> None:
    """Not those of calls that the end of the client ends, and not those that are added after it."""
    called = Seen()
    client = mcpsync.connect(peer(tmp_path).command, limits=Limits(callbacks=1))
    futures = [client.submit("silent") for _ in range(100)]
    for future in futures:
        for _ in range(3):
            future.add_done_callback(called)
    client.close()
    called.wait_count(300)
    futures[0].add_done_callback(called)
    called.wait_count(301)
    assert {type(future.exception(0)) for future in futures} == {mcpsync.ClientClosed}


@pytest.mark.parametrize("interval", [0.005, 1e-6])
@pytest.mark.parametrize("mode", ["pool", "caller", "loop"])
def test_a11_order_and_exclusion_hold_under_any_switching(tmp_path: Path, mode: str, interval: float) -> None:
    """Progress of one call comes in order and one at a time, whoever runs it."""
    before = sys.getswitchinterval()
    stop = threading.Event()
    loop = MainLoop()

    def pump() -> None:
        while not stop.is_set():
            with suppress(queue.Empty):
                loop.waiting.get(timeout=0.02)()

    pumper = threading.Thread(target=pump)
    if mode == "loop":
        pumper.start()
    callbacks: Any = loop if mode == "loop" else mode
    wrong: List[object] = []

    class Ordered:
        def __init__(self) -> None:
            self.seen: List[float] = []
            self.inside = 0

        def __call__(self, progress: Any) -> None:
            self.inside += 1
            if self.inside != 1:
                wrong.append("two at a time")
            self.seen.append(progress.progress)
            self.inside -= 1

    def use() -> None:
        for _ in range(5):
            submitted, blocking = Ordered(), Ordered()
            future = client.submit("flood", {"count": 150, "progress": True}, on_progress=submitted)
            client.call_tool("flood", {"count": 150, "progress": True}, on_progress=blocking)
            future.result()
            for ordered in (submitted, blocking):
                seen = list(ordered.seen)  # of what was submitted, more may come
                if seen != sorted(seen):
                    wrong.append(seen)
            if mode == "caller" and len(blocking.seen) != 150:
                wrong.append("the result did not wait for progress")

    sys.setswitchinterval(interval)
    try:
        with mcpsync.connect(peer(tmp_path).command, callbacks=callbacks) as client:
            users = [threading.Thread(target=use) for _ in range(4)]
            for user in users:
                user.start()
            for user in users:
                user.join()
    finally:
        sys.setswitchinterval(before)
        stop.set()
        if mode == "loop":
            pumper.join()
    assert wrong == []


# -- A12 -------------------------------------------------------------------------------------------------------

NARROW = Limits(handlers=1, callbacks=1, submitted=1)


@pytest.mark.parametrize("slow", [0.0, 0.05])
@pytest.mark.parametrize("era", ERAS)
def test_a12_eight_submitted_calls_all_elicit_with_all_limits_one(tmp_path: Path, era: str, slow: float) -> None:
    def answer(request: Any) -> bool:
        time.sleep(slow)  # a user takes time
        return True

    with mcpsync.connect(peer(tmp_path, era=era).command, elicitation=answer, limits=NARROW) as client:
        futures = [submits(client, era, timeout=20) for _ in range(8)]
        for future in futures:
            assert answered(future.result(20).text, era) == {"action": "accept", "content": {}}


@pytest.mark.parametrize("era", ERAS)
def test_a12_eight_servers(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    clients = [mcpsync.connect(server.command, elicitation=lambda request: True, limits=NARROW) for _ in range(8)]
    futures = [submits(client, era, timeout=20) for client in clients]
    for future in futures:
        assert answered(future.result(20).text, era) == {"action": "accept", "content": {}}
    for client in clients:
        client.close()


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_a12_a_handler_that_blocks_holds_up_no_reply_no_cancel_and_no_deadline(tmp_path: Path, era: str) -> None:
    free, begun = threading.Event(), Seen()

    def block(request: Any) -> bool:
        begun(1)
        free.wait(20)
        return True

    server = peer(tmp_path, era=era)
    timeouts = Timeouts(call=20, ask=20)
    with mcpsync.connect(server.command, elicitation=block, limits=NARROW, timeouts=timeouts) as client:
        first = submits(client, era)
        begun.wait_count(1)
        method = "tools/call"
        others = [submits(client, era) for _ in range(3)]
        server.wait_for(method, 4)
        if era == "legacy":  # those that found no thread are refused after a moment; nothing waits for the first
            for other in others:
                assert "busy" in answered(other.result(5).text, era)["error"]["message"]
        cancelled = submits(client, era)
        server.wait_for(method, 5)
        client.call_tool("echo")  # its answer comes after the question's
        start = time.monotonic()
        assert cancelled.cancel()
        assert cancelled.cancelled()
        short = submits(client, era, timeout=Timeouts(call=20, total=0.3))
        with pytest.raises(mcpsync.RequestTimeout):
            short.result(5)
        silent = client.submit("silent")
        assert silent.cancel()
        server.wait_for("notifications/cancelled")
        if era == "legacy":
            client.ping(timeout=1)
        assert time.monotonic() - start < 1.5
        free.set()
        assert answered(first.result(10).text, era)["action"] == "accept"
        if era == "modern":
            for other in others:
                assert answered(other.result(10).text, era)["action"] == "accept"
