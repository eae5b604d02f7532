"""B16: the interpreter ends while clients are open, connecting, or in the middle of something."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, List

import pytest

from tests.faults.program import Finished, Running, start
from tests.peers.scripted import Peer, peer

pytestmark = pytest.mark.timed

DEV = ("-X", "dev", "-W", "error")
FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}


def ends(program: Running, server: Peer, code: int = 0, seconds: float = 2.0) -> Finished:
    """The program says that it ends, and does so soon, quietly, with this code; nothing is left of its servers."""
    said = program.line()
    assert said == "ending", program.end()
    began = time.monotonic()
    finished = program.end()
    took = time.monotonic() - began
    assert (finished.code, finished.err) == (code, ""), finished.err
    assert took < seconds
    assert server.alive() == []
    return finished


def never_closes(folder: str, command: List[str], how: str, count: int) -> None:
    import builtins
    import os
    import sys

    import mcpsync

    clients = [mcpsync.connect(command, name="peer") for _ in range(count)]
    builtins.kept = clients  # type: ignore[attr-defined]
    for client in clients:
        client.call_tool("echo")
    print("ending", flush=True)
    if how == "exit":
        sys.exit(7)
    elif how == "at once":
        os._exit(7)


@pytest.mark.parametrize(("how", "code"), [("end", 0), ("exit", 7)])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_b16_never_closed(tmp_path: Path, era: str, how: str, code: int) -> None:
    server = peer(tmp_path, era=era)
    ends(start(never_closes, str(tmp_path), server.command, how, 1, options=DEV), server, code)
    assert len(server.events("eof")) == 1


def test_b16_never_closed_and_a_server_that_ignores_the_end_of_its_stdin(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True, ignore_term=True)
    ends(start(never_closes, str(tmp_path), server.command, "end", 8, options=DEV), server, seconds=4)
    assert len(server.events("started")) == 8


def test_b16_never_closed_and_no_time_for_anything(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(never_closes, str(tmp_path), server.command, "at once", 1, options=DEV)
    assert program.line() == "ending"
    assert program.end()[:3] == (7, "", "")
    server.wait_ended(1)


def has_calls_in_flight(folder: str, command: List[str], mode: str) -> None:
    import builtins
    import threading

    import mcpsync

    client = mcpsync.connect(command, name="peer", callbacks=mode)

    def wait() -> None:
        client.call_tool("silent", on_progress=print)
        print("answered")

    for _ in range(3):
        threading.Thread(target=wait, daemon=True).start()
    futures = [client.submit("silent", on_progress=print) for _ in range(3)]
    for future in futures:
        future.add_done_callback(print)
    builtins.kept = client, futures  # type: ignore[attr-defined]
    input()
    print("ending", flush=True)


@pytest.mark.parametrize("mode", ["pool", "caller"])
def test_b16_calls_in_flight(tmp_path: Path, mode: str) -> None:
    server = peer(tmp_path)
    program = start(has_calls_in_flight, str(tmp_path), server.command, mode, options=DEV)
    server.wait_for("tools/call", 6)
    program.say("end now")
    assert ends(program, server).out == ""


def is_used_by_a_daemon_thread(folder: str, command: List[str]) -> None:
    import builtins
    import sys
    import threading
    from contextlib import suppress

    import mcpsync

    started = threading.Event()

    def use() -> None:
        client = mcpsync.connect(command, name="peer")
        builtins.kept = client  # type: ignore[attr-defined]
        while True:
            client.call_tool("echo", {"text": "x" * 100_000})
            client.submit("echo").result()
            started.set()

    def tolerate() -> None:
        with suppress(mcpsync.ClientClosed, RuntimeError):
            use()

    for _ in range(3):
        threading.Thread(target=tolerate, daemon=True).start()
    started.wait()
    print("ending", flush=True)
    sys.exit(4)


def test_b16_a_daemon_thread_in_the_middle_of_calls(tmp_path: Path) -> None:
    server = peer(tmp_path)
    ends(start(is_used_by_a_daemon_thread, str(tmp_path), server.command, options=DEV), server, 4)


def is_inside_a_handler(folder: str, command: List[str], mode: str, how: str, tool: str, arguments: Any) -> None:
    import builtins
    import sys
    import threading

    import mcpsync

    inside = threading.Event()

    def handle(request: Any) -> bool:
        inside.set()
        if how == "handler exits":
            print("ending", flush=True)
            sys.exit(6)
        threading.Event().wait()
        return True

    client = mcpsync.connect(command, name="peer", callbacks=mode, elicitation=handle)
    builtins.kept = client  # type: ignore[attr-defined]
    if how == "handler exits":
        client.call_tool(tool, arguments)
    else:
        builtins.future = client.submit(tool, arguments)  # type: ignore[attr-defined]
        inside.wait()
        print("ending", flush=True)


@pytest.mark.parametrize(("mode", "how", "code"), [("pool", "main exits", 0), ("caller", "handler exits", 6)])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_b16_inside_a_handler(tmp_path: Path, era: str, mode: str, how: str, code: int) -> None:
    question = {"method": "elicitation/create", "params": FORM}
    tool, arguments = ("ask", question) if era == "legacy" else ("rounds", {"questions": {"q": question}})
    server = peer(tmp_path, era=era)
    ends(
        start(is_inside_a_handler, str(tmp_path), server.command, mode, how, tool, arguments, options=DEV), server, code
    )


def is_connecting(folder: str, command: List[str], where: str) -> None:
    import builtins
    import signal
    import sys
    import threading
    from contextlib import suppress

    import mcpsync

    client = mcpsync.Client(command, name="peer")
    builtins.kept = client  # type: ignore[attr-defined]

    def exits(number: int, frame: Any) -> None:
        print("ending", flush=True)
        sys.exit(3)

    def tolerate() -> None:
        with suppress(mcpsync.McpError):
            client.open()

    signal.signal(signal.SIGTERM, exits)
    if where == "here":
        client.open()
    else:
        threading.Thread(target=tolerate, daemon=True).start()
        signal.pause()


@pytest.mark.parametrize("where", ["here", "on a daemon thread"])
def test_b16_during_connect(tmp_path: Path, where: str) -> None:
    server = peer(tmp_path, opening={"server/discover": "silent", "initialize": "silent"})
    program = start(is_connecting, str(tmp_path), server.command, where, options=DEV)
    server.wait_for("server/discover")
    program.terminate()
    ends(program, server, 3)


def opens_again_and_again(folder: str, command: List[str]) -> None:
    import builtins
    import threading
    import time

    import mcpsync

    kept: List[Any] = []
    builtins.kept = kept  # type: ignore[attr-defined]

    def use() -> None:
        try:
            while True:
                kept.append(mcpsync.connect(command, name="peer"))
        except (mcpsync.McpError, RuntimeError):  # it is told that it is too late
            pass

    for _ in range(4):
        threading.Thread(target=use, daemon=True).start()
    time.sleep(0.3)  # any moment will do
    print("ending", flush=True)


def test_b16_daemon_threads_that_go_on_opening(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(opens_again_and_again, str(tmp_path), server.command, options=DEV)
    assert program.line() == "ending"
    finished = program.end(5)
    assert (finished.code, finished.err) == (0, ""), finished.err
    server.wait_ended(2)  # one that was started in the last moment sees the end of its stdin


def calls_at_exit(folder: str, command: List[str], when: str) -> None:
    import atexit
    import builtins
    import time

    def call() -> None:
        began = time.monotonic()
        try:
            print(client.call_tool("echo", {"text": "works"}).text)
            print(client.submit("echo", {"text": "works"}).result().text)
            if when == "opened there":
                client.close()
        except mcpsync.ClientClosed as error:
            print(error)
        assert time.monotonic() - began < 1

    if when == "registered before the import":
        atexit.register(call)
    import mcpsync

    if when == "opened there":
        client = mcpsync.Client(command, name="peer")
    else:
        client = mcpsync.connect(command, name="peer")
        client.call_tool("echo")
    builtins.kept = client  # type: ignore[attr-defined]
    if when != "registered before the import":
        atexit.register(call)
    print("ending", flush=True)


@pytest.mark.parametrize(
    ("when", "out"),
    [
        ("registered after the import", "works\nworks\n"),
        ("registered before the import", "server 'peer': tools/call: the interpreter is shutting down\n"),
        ("opened there", "works\nworks\n"),
    ],
)
def test_b16_a_call_in_an_atexit_handler(tmp_path: Path, when: str, out: str) -> None:
    server = peer(tmp_path)
    assert ends(start(calls_at_exit, str(tmp_path), server.command, when, options=DEV), server).out == out


def calls_when_its_module_is_torn_down(folder: str, command: List[str]) -> None:
    import builtins

    import mcpsync

    class Late:
        def __init__(self) -> None:
            self.client = mcpsync.connect(command, name="peer")
            self.error = mcpsync.ClientClosed
            self.itself = self

        def __del__(self) -> None:
            try:
                self.client.call_tool("echo")
            except self.error as error:
                print(error)

    builtins.kept = Late()  # type: ignore[attr-defined]
    print("ending", flush=True)


def test_b16_a_call_by_what_is_collected_last(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(calls_when_its_module_is_torn_down, str(tmp_path), server.command, options=DEV)
    assert ends(program, server).out in ("", "server 'peer': tools/call: the interpreter is shutting down\n")
