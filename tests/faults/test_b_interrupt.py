"""B11: Ctrl-C, wherever the main thread is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.faults.program import Running, start
from tests.peers.scripted import Peer, peer

timed = pytest.mark.timed
DEV = ("-X", "dev", "-W", "error")
FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}


def is_interrupted(folder: str, command: List[str], mode: str, what: str, arguments: Any) -> None:
    """Waits in some way until Ctrl-C, says how long that took to arrive, and goes on with the same client."""
    import concurrent.futures
    import signal
    import threading
    import time

    import mcpsync

    struck: List[float] = []

    def strike(number: int, frame: Any) -> None:
        struck.append(time.monotonic())
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, strike)

    def wait_in_handler(request: Any) -> bool:
        print("asked", flush=True)
        threading.Event().wait()
        return True

    client = mcpsync.connect(command, name="peer", callbacks=mode, elicitation=wait_in_handler)
    waits = {
        "call": lambda: client.call_tool("silent", timeout=60),
        "call with progress": lambda: client.call_tool("silent", timeout=60, on_progress=print),
        "request": lambda: client.request("x/silent", timeout=60),
        "listing": lambda: client.list_prompts(timeout=60),
        "question": lambda: client.call_tool(arguments["tool"], arguments["arguments"], timeout=60),
        "result": lambda: future.result(None),
        "exception": lambda: future.exception(60),
        "wait": lambda: concurrent.futures.wait([future]),
        "as_completed": lambda: list(concurrent.futures.as_completed([future])),
    }
    if what in ("result", "exception", "wait", "as_completed"):
        future = client.submit("silent", timeout=60)
    try:
        print("waiting", flush=True)
        waits[what]()
        raise AssertionError
    except KeyboardInterrupt:
        assert time.monotonic() - struck[0] < 1
    if what in ("result", "exception", "wait", "as_completed"):
        assert not future.done()
        client.call_tool("echo")
        print("not cancelled", flush=True)
        input()
        assert future.cancel()
        assert future.cancelled()
    for number in range(20):
        assert client.call_tool("echo", {"text": str(number)}, timeout=10).text == str(number)
    assert client.submit("echo", {"text": "on"}).result(10).text == "on"
    client.close()
    print("went on", flush=True)


def assert_told_once(server: Peer, method: str) -> None:
    (request,) = (
        each for each in server.received(method) if each["params"].get("name") not in ("echo",) and "id" in each
    )
    (told,) = server.received("notifications/cancelled")
    assert told["params"]["requestId"] == request["id"]


def answers_listing_never(server: Any, request: Dict[str, Any], **params: Any) -> None:
    """No answer."""


@timed
@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize(
    ("what", "method"),
    [
        ("call", "tools/call"),
        ("call with progress", "tools/call"),
        ("request", "x/silent"),
        ("listing", "prompts/list"),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_b11_during_a_call(tmp_path: Path, era: str, what: str, method: str, mode: str) -> None:
    handlers = {"x/silent": answers_listing_never, "prompts/list": answers_listing_never}
    server = peer(tmp_path, era=era, handlers=handlers)
    program = start(is_interrupted, str(tmp_path), server.command, mode, what, None, options=DEV)
    assert program.line() == "waiting"
    server.wait_for(method)
    wait_until_it_waits(program)
    program.interrupt()
    program.end().check("went on")
    assert_told_once(server, method)


@timed
@pytest.mark.parametrize("what", ["result", "exception", "wait", "as_completed"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_b11_while_a_future_is_waited_for(tmp_path: Path, era: str, what: str) -> None:
    """The call is not the waiter's: it goes on until it is cancelled."""
    server = peer(tmp_path, era=era)
    program = start(is_interrupted, str(tmp_path), server.command, "pool", what, None, options=DEV)
    assert program.line() == "waiting"
    server.wait_for("tools/call")
    wait_until_it_waits(program)
    program.interrupt()
    assert program.line() == "not cancelled"
    assert server.received("notifications/cancelled") == []
    program.say("cancel it")
    program.end().check("went on")
    assert_told_once(server, "tools/call")


@timed
@pytest.mark.parametrize("mode", ["pool", "caller"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_b11_while_a_person_is_asked(tmp_path: Path, era: str, mode: str) -> None:
    """In the handler itself, or in the call that waits for it."""
    question = {"method": "elicitation/create", "params": FORM}
    tool, given = ("ask", question) if era == "legacy" else ("rounds", {"questions": {"q": question}})
    arguments = {"tool": tool, "arguments": given}
    server = peer(tmp_path, era=era)
    program = start(is_interrupted, str(tmp_path), server.command, mode, "question", arguments, options=DEV)
    assert program.line() == "waiting"
    assert program.line() == "asked"
    wait_until_it_waits(program)
    program.interrupt()
    program.end().check("went on")


def sends_a_large_one(folder: str, command: List[str], size: int, unread: int) -> None:
    import mcpsync

    with mcpsync.connect(command, name="peer") as client:
        client.call_tool("stop_reading", {"seconds": 1.5})
        began = client.submit("length", {"text": "a" * unread}) if unread else None
        print("sending", flush=True)
        try:
            client.call_tool("length", {"text": "b" * size}, timeout=60)
            raise AssertionError
        except KeyboardInterrupt:
            pass
        assert client.call_tool("echo", {"text": "whole"}, timeout=20).text == "whole"
        if began is not None:
            assert began.result(10).text == str(unread)
    print("went on", flush=True)


@pytest.mark.parametrize("unread", [0, 500_000])
@pytest.mark.parametrize("size", [4_000_000, 1_000])
def test_b11_during_a_large_frame_that_nobody_reads(tmp_path: Path, size: int, unread: int) -> None:
    """A frame that has begun is finished, and cancelled after that; one that has not begun never travels."""
    server = peer(tmp_path)
    program = start(sends_a_large_one, str(tmp_path), server.command, size, unread, options=DEV)
    assert program.line() == "sending"
    wait_until_it_waits(program)
    program.interrupt()
    program.end().check("went on")
    assert server.events("torn") == []
    lengths = [each for each in server.received("tools/call") if each["params"]["name"] == "length"]
    sent = [each for each in lengths if each["params"]["arguments"]["text"].startswith("b")]
    told = server.received("notifications/cancelled")
    assert [each["params"]["requestId"] for each in told] == [each["id"] for each in sent]
    assert len(sent) == (0 if unread else 1)


def wait_until_it_waits(program: Running) -> None:
    """Until the main thread sleeps for good: a moment's sleep, for the interpreter lock or for a thread that starts,
    ends soon, and the kernel has counted it then."""
    folder = Path("/proc/%d" % program.pid)
    switches: List[str] = []
    since = time.monotonic()
    while time.monotonic() - since < 0.05:
        asleep = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "S"
        counted = [line for line in (folder / "status").read_text().splitlines() if "ctxt_switches" in line]
        if not asleep or counted != switches:
            switches, since = counted, time.monotonic()


def is_interrupted_in_connect(folder: str, command: List[str], good: List[str], how: str) -> None:
    import builtins
    import signal
    import threading
    import time

    import mcpsync

    struck: List[float] = []

    def strike(number: int, frame: Any) -> None:
        struck.append(time.monotonic())
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, strike)
    client = mcpsync.Client(command, name="peer")
    builtins.kept = client  # type: ignore[attr-defined]
    waiting: List[BaseException] = []

    def wait() -> None:
        try:
            client.list_tools()
        except mcpsync.McpError as error:
            waiting.append(error)

    try:
        if how == "connect":
            mcpsync.connect(command, name="peer")
        elif how == "first call":
            client.call_tool("echo")
        else:
            waiter = threading.Thread(target=wait)
            if how == "open, with another that waits":
                waiter.start()
                time.sleep(0)
            client.open()
        raise AssertionError
    except KeyboardInterrupt:
        assert time.monotonic() - struck[0] < 1
    if how == "open, with another that waits":
        print("interrupted", flush=True)
        client.close()
        waiter.join(5)
        assert not waiter.is_alive()
        assert len(waiting) == 1, waiting
    else:
        assert client.state == "new", client.state
        print("interrupted", flush=True)
        input()
        client.close()
    with mcpsync.connect(good, name="good") as client:
        assert client.call_tool("echo", {"text": "x"}).text == "x"
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("mcpsync-")]
    assert left == [], left
    print("went on", flush=True)


@timed
@pytest.mark.parametrize("how", ["connect", "open", "first call", "open, with another that waits"])
@pytest.mark.parametrize("stubborn", [True, False])
def test_b11_during_connect(tmp_path: Path, stubborn: bool, how: str) -> None:
    opening = {"server/discover": "silent", "initialize": "silent"}
    server = peer(tmp_path, opening=opening, ignore_eof=stubborn, ignore_term=stubborn)
    good = peer(tmp_path)
    program = start(is_interrupted_in_connect, str(tmp_path), server.command, good.command, how, options=DEV)
    server.wait_for("server/discover")
    wait_until_it_waits(program)
    program.interrupt()
    assert program.line() == "interrupted"
    if "another" not in how:
        server.wait_ended(1)
        program.say("go on")
    program.end().check("went on")
    assert server.alive() == []
    assert server.received("notifications/cancelled") == []  # the handshake is never cancelled


def is_interrupted_in_close(folder: str, command: List[str], how: str) -> None:
    import signal
    import threading
    import time

    import mcpsync

    struck: List[float] = []

    def strike(number: int, frame: Any) -> None:
        struck.append(time.monotonic())
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, strike)
    try:
        with mcpsync.connect(command, name="peer") as client:
            client.call_tool("echo")
            pending = client.submit("silent")
            if how == "with another thread":
                closer = threading.Thread(target=client.close)
                closer.start()
            print("closing", flush=True)
        raise AssertionError
    except KeyboardInterrupt:
        assert time.monotonic() - struck[0] < 1
    if how == "with another thread":
        closer.join()
    client.close()
    assert type(pending.exception(0)) is mcpsync.ClientClosed
    deadline = time.monotonic() + 2
    while [thread for thread in threading.enumerate() if thread.name.startswith("mcpsync-")]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    print("went on", flush=True)


@timed
@pytest.mark.parametrize("how", ["alone", "with another thread"])
def test_b11_during_close(tmp_path: Path, how: str) -> None:
    """The server is ended without further manners."""
    server = peer(tmp_path, ignore_eof=True, ignore_term=True)
    program = start(is_interrupted_in_close, str(tmp_path), server.command, how, options=DEV)
    assert program.line() == "closing"
    server.wait_event("eof")
    wait_until_it_waits(program)
    program.interrupt()
    program.end(15).check("went on")
    assert server.alive() == []


def ends_by_interrupt(folder: str, command: List[str]) -> None:
    import mcpsync

    with mcpsync.connect(command, name="peer") as client:
        client.call_tool("silent", timeout=60)


@timed
def test_b11_a_script_that_does_nothing_about_it(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(ends_by_interrupt, str(tmp_path), server.command)
    server.wait_for("tools/call")
    wait_until_it_waits(program)
    program.interrupt()
    finished = program.end(5)
    assert finished.code in (-2, 130)
    assert finished.err.rstrip().endswith("KeyboardInterrupt")
    assert "During handling" not in finished.err
    assert_told_once(server, "tools/call")
    assert server.alive() == []


def is_interrupted_at_random(folder: str, command: List[str], what: str, seconds: float, seed: int) -> None:
    """Ctrl-C at any moment of one operation, again and again; after each the client, or the next one, works."""
    import faulthandler
    import os
    import random
    import signal
    import threading
    import time

    import mcpsync
    from mcpsync.core import negotiation
    from mcpsync.transport import stdio

    assert mcpsync.connect and negotiation and stdio  # no import is to be interrupted
    armed = False

    def strike(number: int, frame: Any) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, strike)
    faulthandler.dump_traceback_later(seconds + 30, exit=True)
    chance = random.Random(seed)
    hits = 0

    def interrupted(operation: Any, most: float) -> Any:
        nonlocal armed, hits
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, most))
            outcome = operation()
            armed = False
            return outcome
        except KeyboardInterrupt:
            hits += 1
            return None

    def children() -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def settled() -> bool:
        # a thread that was interrupted before it began is listed for ever, and has no ident
        threads = [each for each in threading.enumerate() if each.name.startswith("mcpsync-") and each.ident]
        return not children() and not threads

    def settle() -> None:
        end_of_patience = time.monotonic() + 5
        while not settled():
            assert time.monotonic() < end_of_patience, (children(), threading.enumerate())
            time.sleep(0.002)

    def new() -> Any:
        return mcpsync.Client(command, name="peer", protocol="modern", timeouts=mcpsync.Timeouts(call=20))

    end = time.monotonic() + seconds
    client = new()
    while time.monotonic() < end:
        if what == "connect":
            client = new()
            interrupted(client.open, 0.05)
            assert client.call_tool("echo", {"text": "x"}).text == "x"
            client.close()
            settle()
        elif what == "close":
            client = new()
            client.call_tool("echo")
            interrupted(client.close, 0.02)
            client.close()
            settle()
        else:
            text = "x" * (300_000 if what == "large call" else 10)
            operation = (
                (lambda: client.submit("length", {"text": text}).result())
                if what == "result"
                else (lambda: client.call_tool("length", {"text": text}))
            )
            result = interrupted(operation, 0.01 if what == "large call" else 0.001)
            assert result is None or result.text == str(len(text))
            assert client.call_tool("length", {"text": text}).text == str(len(text))
    signal.setitimer(signal.ITIMER_REAL, 0)
    client.close()
    settle()
    faulthandler.cancel_dump_traceback_later()
    assert hits > 0
    print("went on", flush=True)


OPERATIONS = ["connect", "call", "large call", "result", "close"]


@pytest.mark.parametrize("what", OPERATIONS)
def test_b11_at_any_moment(tmp_path: Path, what: str) -> None:
    program = start(is_interrupted_at_random, str(tmp_path), peer(tmp_path, lifetime=1000).command, what, 2.0, 1)
    program.end().check("went on")


@pytest.mark.soak
@pytest.mark.parametrize("what", OPERATIONS)
def test_b11_at_any_moment_for_long(tmp_path: Path, what: str) -> None:
    program = start(is_interrupted_at_random, str(tmp_path), peer(tmp_path, lifetime=1000).command, what, 60.0, 2)
    program.end(120).check("went on")
