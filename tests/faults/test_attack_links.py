"""Links that are opened, lost and closed while the program itself is in trouble."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import wait
from pathlib import Path
from typing import Any, List

import pytest

import mcpsync
from mcpsync import ClientClosed, ConnectFailed, ConnectionLost, ProcessExited
from mcpsync.connection.backoff import Backoff
from mcpsync.deadline import Deadline
from mcpsync.transport.stdio import StdioTransport
from tests.faults.program import run
from tests.faults.watch import Seen, took
from tests.peers.scripted import peer


def test_closed_at_the_moment_in_which_a_transport_opens(tmp_path: Path) -> None:
    opening, closed = threading.Event(), threading.Event()
    server = peer(tmp_path)

    class Slow(StdioTransport):
        def open(self, deadline: Deadline) -> None:
            opening.set()
            assert closed.wait(10)
            super().open(deadline)

    client = mcpsync.Client(lambda: Slow(server.command), name="slow")
    errors = Seen()

    def open_it() -> None:
        try:
            client.open()
        except mcpsync.McpError as error:
            errors(error)

    opener = threading.Thread(target=open_it)
    opener.start()
    assert opening.wait(10)
    client.close()
    closed.set()
    (error,) = errors.wait_count(1)
    opener.join()
    assert isinstance(error, ClientClosed)
    assert "'slow': the client was closed while it connected" in str(error)
    assert server.pids() == []


def test_no_thread_can_be_started_for_the_attempts_to_connect_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They fail, one after the other, and the series ends; it does not stand still."""
    states = Seen()
    server = peer(tmp_path)
    with mcpsync.connect(
        server.command, callbacks=lambda run_soon: run_soon(), on_state=states, backoff=Backoff((0.05, 0.05))
    ) as client:

        def refuse(thread: Any) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(ProcessExited):
                client.call_tool("die", {"code": 3})
            states.wait_for("down")
            with pytest.raises(ConnectFailed, match="thread"):
                client.call_tool("echo")
            with pytest.raises(ConnectFailed, match="thread"):
                mcpsync.connect(server.command)
        states.wait(lambda items: items[-1] in ("ready", "down"))
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    server.wait_ended()


@pytest.mark.timed
def test_the_reader_is_told_to_exit(tmp_path: Path) -> None:
    """By a log handler, say: its calls fail at once, and a new link is made."""

    class Leaver(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise SystemExit(3)

    log, leaver, quiet = logging.getLogger("mcpsync.server.peer"), Leaver(), logging.getLogger("mcpsync")
    log.addHandler(leaver)
    log.setLevel(logging.DEBUG)
    disabled: List[bool] = [quiet.disabled]
    server = peer(tmp_path)
    states = Seen()
    try:
        with mcpsync.connect(server.command, name="peer", on_state=states, backoff=Backoff((0.01,))) as client:
            pending = client.submit("silent")
            server.wait_for("tools/call")
            quiet.disabled = True
            with took() as lost:
                writing = client.submit("write_stderr", {"size": 80})
                error = pending.exception(5)
            assert isinstance(error, ConnectionLost) and "the transport failed: SystemExit: 3" in str(error)
            wait([writing], 5)  # its answer may have come before
            assert lost.seconds < 2
            log.removeHandler(leaver)
            states.wait_for("ready", 2)
            assert client.call_tool("echo", {"text": "on"}).text == "on"
    finally:
        quiet.disabled = disabled[0]
        log.removeHandler(leaver)
        log.setLevel(logging.NOTSET)


def has_no_descriptor_left(folder: str, command: List[str]) -> None:
    import contextlib
    import os
    import resource

    import mcpsync

    with mcpsync.connect(command) as client, mcpsync.connect(command) as other:
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
        taken = []
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        try:
            client.reconnect()
        except mcpsync.ConnectFailed as error:
            print("Too many open files" in str(error))
        other.close()
        for descriptor in taken:
            os.close(descriptor)
        client.reconnect()
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("no child")


def test_no_descriptor_is_left_to_close_and_to_connect_with(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True)
    run(has_no_descriptor_left, str(tmp_path), server.command).check("True\nno child")
    server.wait_ended()
