"""A host that is closed at odd moments, by odd threads, in forked children, or not at all."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import List

import pytest

from mcpsync import Backoff, ClientClosed, Host
from tests.host.watching import DEMO, QUICK, Watch, entry, host_of, names, row
from tests.peers.scripted import peer

MUTE = {"server/discover": "silent", "initialize": "silent"}


@pytest.mark.timed
def test_close_from_another_thread_while_it_connects(tmp_path: Path) -> None:
    server = peer(tmp_path, opening=MUTE)
    host = host_of({"peer": entry(server.command), "demo": DEMO})
    outcome: List[BaseException] = []

    def connect() -> None:
        try:
            host.open()
        except ClientClosed as error:
            outcome.append(error)

    opener = threading.Thread(target=connect)
    opener.start()
    server.wait_for("server/discover")
    started = time.monotonic()
    host.close()
    opener.join(5)
    assert time.monotonic() - started < 3
    assert [str(error) for error in outcome] == ["the host is closed"]
    server.wait_ended()


@pytest.mark.timed
def test_b7_close_ends_stubborn_servers_together_and_in_time(tmp_path: Path) -> None:
    stubborn = [peer(tmp_path, ignore_eof=True, ignore_term=True) for _ in range(4)]
    with host_of({"peer%d" % number: entry(server.command) for number, server in enumerate(stubborn)}) as host:
        assert all(status.ready for status in host.status())
        started = time.monotonic()
        host.close(timeout=2)
        assert time.monotonic() - started < 2.5
    for server in stubborn:
        server.wait_ended()


def test_close_from_several_threads_at_once_while_calls_wait() -> None:
    host = host_of({"one": DEMO, "two": DEMO})
    host.open()
    failed: List[BaseException] = []

    def call(name: str) -> None:
        try:
            host.call_tool(name, {"seconds": 60})
        except ClientClosed as error:
            failed.append(error)

    callers = [threading.Thread(target=call, args=("mcp__%s__slow" % name,)) for name in ("one", "two") * 3]
    for caller in callers:
        caller.start()
    closers = [threading.Thread(target=host.close) for _ in range(3)]
    for closer in closers:
        closer.start()
    for thread in closers + callers:
        thread.join(10)
        assert not thread.is_alive()
    assert len(failed) == 6
    assert [status.state for status in host.status()] == ["closed", "closed"]


def test_close_while_an_attempt_waits_for_its_time() -> None:
    exits = entry([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    with host_of({"exits": exits}, backoff=Backoff((60.0,)), protocol="legacy") as host:
        status = row(host, "exits")
        assert status.state == "waiting"
        assert 50 < (status.next_attempt or 0) <= 60


def test_close_from_its_own_callback() -> None:
    closed = threading.Event()

    def on_tools_changed(revision: int) -> None:
        host.close()
        closed.set()

    host = Host.from_config({"mcpServers": {"demo": DEMO}}, on_tools_changed=on_tools_changed, approve=lambda _: "once")
    with contextlib.suppress(ClientClosed):  # the callback may be quicker
        host.open()
    assert closed.wait(5)
    assert row(host, "demo").state == "closed"


def test_a_close_that_was_never_opened() -> None:
    host = host_of({"demo": DEMO})
    host.close()
    host.close()
    with pytest.raises(ClientClosed):
        host.open()


def test_threads_that_use_it_first_at_the_same_time(tmp_path: Path) -> None:
    server = peer(tmp_path)
    host = host_of({"peer": entry(server.command)})
    start, answers = threading.Barrier(8), []

    def use(number: int) -> None:
        start.wait()
        answers.append(host.call_tool("mcp__peer__echo", {"text": str(number)}).text == str(number))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    host.close()
    assert answers == [True] * 8
    assert len(server.events("started")) == 1


def test_b11_an_interrupt_while_it_connects_closes_it(tmp_path: Path) -> None:
    server = peer(tmp_path, opening=MUTE)
    host = host_of({"peer": entry(server.command)})

    def interrupt() -> None:
        server.wait_for("server/discover")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt), host:
        pass
    helper.join()
    server.wait_ended()


def test_a13_a_host_that_is_dropped_is_closed(tmp_path: Path) -> None:
    server = peer(tmp_path)
    host = host_of({"peer": entry(server.command)}, Watch())
    host.open()
    with pytest.warns(ResourceWarning, match="'peer' was never closed"):
        del host
        gc.collect()
        server.wait_ended()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a8_a_forked_child_connects_servers_of_its_own(tmp_path: Path) -> None:
    script = """
        import os, sys, warnings
        from mcpsync import Host
        warnings.simplefilter("ignore", DeprecationWarning)
        peer = {"command": sys.argv[1], "args": sys.argv[2:]}
        host = Host.from_config({"mcpServers": {"peer": peer}}, approve=lambda _: "once")
        host.open()
        child = os.fork()
        if child == 0:
            assert host.status()[0].ready
            assert host.call_tool("mcp__peer__echo", {"text": "child"}).text == "child"
            host.close()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert host.call_tool("mcp__peer__echo", {"text": "parent"}).text == "parent"
        host.close()
        """
    server = peer(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *server.command],
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(server.events("started")) == 2
    server.wait_ended()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a8_a_child_forked_while_the_parent_connects_and_holds_locks(tmp_path: Path) -> None:
    script = """
        import os, sys, threading, warnings
        from mcpsync import Host
        warnings.simplefilter("ignore", DeprecationWarning)
        peer = {"command": sys.argv[1], "args": sys.argv[2:]}
        host = Host.from_config({"mcpServers": {"peer": peer}}, approve=lambda _: "once")
        opener = threading.Thread(target=host.open)
        # a fork in the middle of whatever: every lock of the host is held by another thread
        member = host._members["peer"]
        opener.start()
        while not member.pending and not member.is_ready():
            pass
        held = [host._crew.changed, host._catalog._lock, member._lock]
        for lock in held:
            lock.acquire()
        child = os.fork()
        if child == 0:
            host.open()
            assert host.call_tool("mcp__peer__echo", {"text": "child"}).text == "child"
            host.close()
            os._exit(7)
        for lock in held:
            lock.release()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        opener.join()
        assert host.call_tool("mcp__peer__echo", {"text": "parent"}).text == "parent"
        host.close()
        """
    server = peer(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *server.command],
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    server.wait_ended()


def test_b16_the_interpreter_ends_with_an_open_host(tmp_path: Path) -> None:
    script = """
        import sys
        from mcpsync import Backoff, Host
        servers = {
            "peer": {"command": sys.argv[1], "args": sys.argv[2:]},
            "exits": {"command": sys.executable, "args": ["-S", "-c", "raise SystemExit(3)"]},
        }
        host = Host.from_config({"mcpServers": servers}, backoff=Backoff((0.01,) * 100), approve=lambda _: "once")
        host.open()
        import logging
        logging.disable()
        sys.exit(4)
        """
    server = peer(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *server.command],
        timeout=30,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert "Traceback" not in done.stderr
    server.wait_ended()


def test_b9_reconnects_leave_flat_threads_and_descriptors(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with host_of({"peer": entry(server.command)}, backoff=QUICK) as host:

        def count() -> int:
            return threading.active_count() + len(os.listdir("/proc/self/fd"))

        host.call_tool("mcp__peer__echo")
        before = count()
        for _ in range(15):
            host.client("peer").reconnect()
            assert host.call_tool("mcp__peer__echo", {"text": "x"}).text == "x"
        assert count() <= before + 6
        assert len(server.alive()) <= 2
        assert "mcp__peer__echo" in names(host) or not row(host, "peer").ready


def test_a1_no_asyncio() -> None:
    script = """
        import sys
        sys.modules["asyncio"] = None
        from mcpsync import Host
        demo = {"command": sys.executable, "args": ["-m", "mcpsync.demo"]}
        with Host.from_config({"mcpServers": {"demo": demo}}, approve=lambda _: "once") as host:
            call = {"id": "1", "function": {"name": "mcp__demo__echo", "arguments": {"text": "x"}}}
            print(host.dispatch("openai", call))
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], timeout=60, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert "'content': 'x'" in done.stdout
