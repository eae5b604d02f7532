"""A8: fork and other ways to another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import pytest

from tests.faults.program import run, start
from tests.peers.scripted import peer

# Newer Pythons warn of each fork beside threads.
QUIET = ("-W", "error", "-W", "ignore::DeprecationWarning")
METHODS = ["fork", "forkserver", "spawn"]


def whoami(server: Any, request: Any) -> str:
    """The server's own process id."""
    import os

    return str(os.getpid())


def wait_for(pid: int) -> None:
    """Wait for a forked child, which has to end well, and soon."""
    import os
    import signal
    import threading

    timer = threading.Timer(20, os.kill, (pid, signal.SIGABRT))
    timer.start()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    timer.cancel()
    timer.join()
    assert code == 0, "the child ended with %s" % code


def reopens(folder: str, command: List[str], ending: str) -> None:
    import builtins
    import os
    import sys

    import mcpsync

    client = mcpsync.connect(command, name="peer")
    ours = client.call_tool("whoami").text
    pid = os.fork()
    if pid == 0:
        assert client.state == "dormant"
        if ending != "untouched":
            theirs = client.call_tool("whoami").text
            assert theirs != ours
            assert client.submit("whoami").result() == client.call_tool("whoami")
        if ending == "closed":
            client.close()
            client.close()
        elif ending == "dropped":
            import gc
            import warnings

            warnings.simplefilter("ignore")
            del client
            gc.collect()
        elif ending == "at once":
            os._exit(0)
        else:
            builtins.kept = client  # type: ignore[attr-defined]
        sys.exit(0)
    wait_for(pid)
    assert client.call_tool("whoami").text == ours
    client.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("ending", ["closed", "left open", "dropped", "at once", "untouched"])
def test_a8_fork_the_child_reopens_and_the_parents_server_lives_on(tmp_path: Path, era: str, ending: str) -> None:
    server = peer(tmp_path, whoami, era=era)
    run(reopens, str(tmp_path), server.command, ending, helpers=[wait_for], options=QUIET).check()
    assert len(server.events("started")) == (1 if ending == "untouched" else 2)
    assert server.received("notifications/cancelled") == []
    server.wait_ended()


def keeps_nothing(folder: str, command: List[str]) -> None:
    import os

    import mcpsync

    client = mcpsync.connect(command, name="peer")
    hold, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        os.read(hold, 1)  # lives until the parent says so
        os._exit(0)
    os.close(hold)
    client.close()
    print("closed", flush=True)
    input()
    os.close(release)
    wait_for(pid)


def test_a8_fork_no_descriptor_in_the_child_keeps_the_server_alive(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(keeps_nothing, str(tmp_path), server.command, helpers=[wait_for], options=QUIET)
    assert program.line() == "closed"
    assert len(server.events("eof")) == 1  # it was not the signals of a close that ended it
    assert server.alive() == []
    program.say("go on")
    program.end().check()


def notices_the_end(folder: str, command: List[str]) -> None:
    import os
    import time

    import mcpsync

    del os.pidfd_open  # as on macOS: there a thread waits for the process and tells by a pipe
    client = mcpsync.connect(command, name="peer")
    hold, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        os.read(hold, 1)
        os._exit(0)
    began = time.monotonic()
    try:
        client.call_tool("die", {"code": 3})
        raise AssertionError
    except mcpsync.ProcessExited as error:
        assert error.exit_code == 3
    assert time.monotonic() - began < 2
    client.close()
    os.close(release)
    wait_for(pid)


def test_a8_fork_the_end_of_the_server_is_noticed_without_process_handles(tmp_path: Path) -> None:
    server = peer(tmp_path)
    run(notices_the_end, str(tmp_path), server.command, helpers=[wait_for], options=QUIET).check()


def forks_while_opening(folder: str, command: List[str], times: int) -> None:
    import os
    import threading

    import mcpsync

    hold, release = os.pipe()
    children = []
    opened = threading.Event()

    def fork() -> None:
        while not opened.is_set():
            pid = os.fork()
            if pid == 0:
                os.close(release)
                os.read(hold, 1)
                os._exit(0)
            children.append(pid)
            if len(children) > 40:
                return

    for _ in range(times):
        opened.clear()
        forker = threading.Thread(target=fork)
        forker.start()
        client = mcpsync.connect(command, name="peer", protocol="legacy")
        opened.set()
        forker.join()
        client.close()
    print("closed", flush=True)
    input()
    os.close(release)
    for pid in children:
        wait_for(pid)


def test_a8_fork_while_another_thread_opens(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(forks_while_opening, str(tmp_path), server.command, 8, helpers=[wait_for], options=QUIET)
    assert program.line() == "closed"
    assert len(server.events("started")) == 8
    assert len(server.events("eof")) == 8  # the many children that live hold none of the pipes
    assert server.alive() == []
    program.say("go on")
    program.end().check()


def forks_while_closing_in_the_background(folder: str, command: List[str]) -> None:
    import os
    import threading
    from contextlib import suppress

    import mcpsync

    gone = threading.Event()
    client = mcpsync.connect(command, name="peer", on_state=lambda state: state == "waiting" and gone.set())
    with suppress(mcpsync.ConnectionLost):
        client.call_tool("close_stdout", {"answer": False}, timeout=10)
    assert gone.wait(10)  # the old server is being ended by now, in a thread of the library
    hold, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        os.read(hold, 1)
        os._exit(0)
    client.close()
    print("closed", flush=True)
    input()
    os.close(release)
    wait_for(pid)


def test_a8_fork_while_a_lost_link_is_closed(tmp_path: Path) -> None:
    server = peer(tmp_path)
    program = start(
        forks_while_closing_in_the_background, str(tmp_path), server.command, helpers=[wait_for], options=QUIET
    )
    assert program.line() == "closed"
    assert len(server.events("eof")) == len(server.events("started"))
    assert server.alive() == []
    program.say("go on")
    program.end().check()


def forks_among_calls(folder: str, command: List[str], mode: str) -> None:
    import os
    import threading

    import mcpsync

    client = mcpsync.connect(command, name="peer", callbacks=mode)
    done = threading.Event()
    failures = []

    def call(number: int) -> None:
        at = 0
        while not done.is_set():
            at += 1
            text = "%d-%d" % (number, at)
            progress: List[Any] = []
            try:
                got = (
                    client.submit("echo", {"text": text}).result()
                    if at % 3 == 0
                    else client.call_tool("echo", {"text": text}, on_progress=progress.append if at % 2 else None)
                )
            except BaseException as error:
                failures.append(repr(error))
                raise
            if got.text != text:
                failures.append((got.text, text))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for round in range(15):
        pid = os.fork()
        if pid == 0:
            assert client.call_tool("echo", {"text": "child"}).text == "child"
            assert client.submit("echo", {"text": "child"}).result().text == "child"
            client.close()
            os._exit(0)
        wait_for(pid)
    done.set()
    for caller in callers:
        caller.join()
    client.close()
    assert failures == [], failures


@pytest.mark.parametrize("mode", ["pool", "caller"])
def test_a8_fork_whatever_locks_other_threads_hold(tmp_path: Path, mode: str) -> None:
    server = peer(tmp_path)
    run(forks_among_calls, str(tmp_path), server.command, mode, helpers=[wait_for], options=QUIET).check()


def forks_with_a_future(folder: str, command: List[str]) -> None:
    import concurrent.futures
    import os
    import time

    import mcpsync

    client = mcpsync.connect(command, name="peer")
    future = client.submit("sleep", {"seconds": 0.5})
    called: List[Any] = []
    future.add_done_callback(called.append)
    pid = os.fork()
    if pid == 0:
        began = time.monotonic()
        assert concurrent.futures.wait([future], timeout=5).done == {future}
        try:
            future.result()
            raise AssertionError
        except mcpsync.ConnectionLost as error:
            assert "parent process" in str(error) and "tools/call" in str(error), error
        assert not future.cancel()
        assert time.monotonic() - began < 1
        assert called == []
        os._exit(0)
    wait_for(pid)
    assert future.result().text == "slept"
    client.close()
    assert called == [future]


def test_a8_fork_a_future_of_the_parent_fails_in_the_child(tmp_path: Path) -> None:
    server = peer(tmp_path)
    run(forks_with_a_future, str(tmp_path), server.command, helpers=[wait_for], options=QUIET).check()
    assert server.received("notifications/cancelled") == []


def forks_in_a_callback(folder: str, command: List[str], mode: str, kind: str) -> None:
    import os

    import mcpsync

    children: List[int] = []
    parent = os.getpid()

    def fork(argument: Any) -> Any:
        children.append(os.fork())
        if children[-1] == 0 and mode == "pool":
            os._exit(0)
        return {}

    handler = fork if kind == "handler" else None
    client = mcpsync.connect(command, name="peer", callbacks=mode, elicitation=handler)
    try:
        if kind == "handler":
            params = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            client.call_tool("ask", {"method": "elicitation/create", "params": params}, timeout=10)
        else:
            client.call_tool("flood", {"count": 1, "progress": True}, on_progress=fork, timeout=10)
            while not children:
                client.call_tool("echo")
        assert os.getpid() == parent or kind == "progress"  # the answer may have been there already
    except mcpsync.ConnectionLost as error:
        assert os.getpid() != parent and "parent process" in str(error), error
    if os.getpid() != parent:
        assert client.call_tool("echo", {"text": "again"}).text == "again"
        client.close()
        os._exit(0)
    wait_for(children[0])
    assert client.call_tool("echo", {"text": "still"}).text == "still"
    client.close()


@pytest.mark.parametrize("kind", ["handler", "progress"])
@pytest.mark.parametrize("mode", ["pool", "caller"])
def test_a8_fork_in_a_callback(tmp_path: Path, mode: str, kind: str) -> None:
    server = peer(tmp_path, era="legacy")
    run(forks_in_a_callback, str(tmp_path), server.command, mode, kind, helpers=[wait_for], options=QUIET).check()


def forks_twice(folder: str, command: List[str]) -> None:
    import os

    import mcpsync

    client = mcpsync.Client(command, name="peer")
    pid = os.fork()
    if pid == 0:
        assert client.state == "new"
        ours = client.call_tool("whoami").text
        grandchild = os.fork()
        if grandchild == 0:
            assert client.call_tool("whoami").text != ours
            client.close()
            try:
                client.call_tool("whoami")
                raise AssertionError
            except mcpsync.ClientClosed:
                os._exit(0)
        wait_for(grandchild)
        assert client.call_tool("whoami").text == ours
        client.close()
        os._exit(0)
    wait_for(pid)
    assert client.state == "new"
    client.close()
    pid = os.fork()
    if pid == 0:
        try:
            client.call_tool("whoami")
            raise AssertionError
        except mcpsync.ClientClosed:
            os._exit(0)
    wait_for(pid)


def test_a8_fork_of_a_client_that_was_never_opened_and_of_one_that_is_closed(tmp_path: Path) -> None:
    server = peer(tmp_path, whoami)
    run(forks_twice, str(tmp_path), server.command, helpers=[wait_for], options=QUIET).check()
    server.wait_ended()


def subscribes_and_forks(folder: str, command: List[str]) -> None:
    import os
    import threading

    import mcpsync

    told = threading.Event()
    client = mcpsync.connect(command, name="peer", log_level="debug")
    client.subscribe_resource("item:1", lambda uri: told.set())
    pid = os.fork()
    if pid == 0:
        client.call_tool("updated", {"uri": "item:1"})
        assert told.wait(10)
        client.close()
        os._exit(0)
    wait_for(pid)
    assert not told.is_set()
    client.call_tool("updated", {"uri": "item:1"})
    assert told.wait(10)
    client.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a8_fork_subscriptions_are_restored_in_the_child(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era)
    run(subscribes_and_forks, str(tmp_path), server.command, helpers=[wait_for], options=QUIET).check()


def forks_without_hooks(folder: str, command: List[str]) -> None:
    import ctypes
    import os
    import sys
    import types

    import mcpsync

    uwsgi = types.ModuleType("uwsgi")  # as the server injects it
    uwsgi.opt = {"enable-threads": True}  # type: ignore[attr-defined]
    sys.modules["uwsgi"] = uwsgi
    client = mcpsync.connect(command, name="peer")
    ours = client.call_tool("whoami").text
    pid = ctypes.PyDLL(None).fork()  # as uWSGI does it: none of Python's hooks is run
    if pid == 0:
        assert client.call_tool("whoami").text != ours
        assert client.submit("whoami").result().text != ours
        client.close()
        os._exit(0)
    wait_for(pid)
    assert client.call_tool("whoami").text == ours
    client.close()


def test_a8_fork_that_runs_none_of_pythons_hooks(tmp_path: Path) -> None:
    server = peer(tmp_path, whoami)
    run(forks_without_hooks, str(tmp_path), server.command, helpers=[wait_for], options=QUIET).check()
    server.wait_ended()


def work(client: Any, text: str) -> str:
    return str(client.call_tool("echo", {"text": text}).text)


def give(client: Any, text: str, out: Any) -> None:
    out.put(client.call_tool("echo", {"text": text}).text)
    client.close()


def gives_to_a_process(folder: str, command: List[str], method: str) -> None:
    import multiprocessing

    import mcpsync

    context = multiprocessing.get_context(method)
    unopened = mcpsync.Client(command, name="peer", timeouts=mcpsync.Timeouts(call=30))
    opened = mcpsync.connect(command, name="peer")
    out = context.SimpleQueue()
    process = context.Process(target=give, args=(unopened, "unopened", out))
    process.start()
    assert out.get() == "unopened"
    process.join()
    assert process.exitcode == 0
    assert unopened.state == "new"
    process = context.Process(target=give, args=(opened, "opened", out))
    if method == "fork":
        process.start()
        assert out.get() == "opened"
        process.join()
        assert process.exitcode == 0
    else:
        try:
            process.start()
            raise AssertionError
        except TypeError as error:
            assert "has been opened" in str(error)
    assert opened.call_tool("echo", {"text": "parent"}).text == "parent"
    opened.close()
    unopened.close()


@pytest.mark.parametrize("method", METHODS)
def test_a8_multiprocessing(tmp_path: Path, method: str) -> None:
    server = peer(tmp_path)
    run(gives_to_a_process, str(tmp_path), server.command, method, helpers=[give], options=QUIET).check()
    server.wait_ended()


def uses_a_pool(folder: str, command: List[str], method: str) -> None:
    import concurrent.futures
    import multiprocessing

    import mcpsync

    parents = mcpsync.connect(command, name="peer")
    client = mcpsync.Client(command, name="peer")
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        results = [pool.submit(work, client, str(number)) for number in range(6)]
        assert [result.result() for result in results] == [str(number) for number in range(6)]
    assert work(parents, "on") == "on"
    parents.close()


@pytest.mark.parametrize("method", METHODS)
def test_a8_process_pool(tmp_path: Path, method: str) -> None:
    """The workers never close their clients: those are dropped, and what is left ends with the process."""
    server = peer(tmp_path)
    finished = run(uses_a_pool, str(tmp_path), server.command, method, helpers=[work], options=("-W", "ignore"))
    assert (finished.code, finished.err) == (0, "")
    server.wait_ended()


def leaves_it_open(client: Any) -> None:
    import builtins

    client.call_tool("echo")
    builtins.kept = client  # type: ignore[attr-defined]


def ends_with_a_stubborn_server(folder: str, command: List[str], method: str) -> None:
    import multiprocessing

    import mcpsync

    process = multiprocessing.get_context(method).Process(
        target=leaves_it_open, args=(mcpsync.Client(command, name="peer"),)
    )
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("method", METHODS)
def test_a8_a_process_of_multiprocessing_ends_its_servers(tmp_path: Path, method: str) -> None:
    """It looks at no ``atexit``, and this server does not end by itself when its stdin does."""
    server = peer(tmp_path, ignore_eof=True)
    how = {"helpers": [leaves_it_open], "options": QUIET}
    run(ends_with_a_stubborn_server, str(tmp_path), server.command, method, **how).check()
    server.wait_ended(1)
