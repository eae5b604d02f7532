"""What nobody should hand to a client, and what no server should answer: each a clear error, or a logged skip."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

import mcpsync
from mcpsync import ConfigError, ConnectFailed, Extension, RpcError, Timeouts, ToolError
from mcpsync.config import load
from mcpsync.connection.backoff import Backoff
from mcpsync.connection.settings import Limits
from mcpsync.deadline import Deadline
from mcpsync.errors import described
from tests.faults.program import run
from tests.faults.watch import Seen
from tests.peers.scripted import peer

COMMAND = ["true"]
WRONG: Dict[str, List[Any]] = {
    "name": [5, b"x"],
    "client_info": ["x", {"name": "x", "version": "1"}],
    "elicitation": ["x"],
    "elicitation_modes": [None, "form", [5]],
    "sampling": [5],
    "roots": [5, "~"],
    "on_log": ["x"],
    "on_state": ["x"],
    "on_notification": [5],
    "on_tools_changed": [5],
    "stderr": ["x"],
    "extensions": [5, "a/b", {"a/b": 5}, {5: {}}, {"b": {}}, {"a/b/c": {}}, [Extension("a/b"), Extension("a/b")]],
    "result_types": [5, "task"],
    "limits": [5, Limits(handlers=0), Limits(rounds=True)],
    "backoff": [5, (1, 2), Backoff((float("nan"),))],
    "page_limit": [0, True, "5", 1.5],
    "debounce": [-1, float("nan"), float("inf"), "x", True],
    "max_message": [0, -1, None, "5"],
    "connections": [0, None],
    "env": [["A=b"], {"A": 5}, {5: "x", "a": "y"}, {"A": ["x"]}, {b"A": b"b"}, 5],
    "env_mode": ["foo", None, 5],
    "path_prepend": ["/bin", None, [5]],
    "timeouts": [5, None],
    "callbacks": [None, "foo"],
}


@pytest.mark.parametrize("option", sorted(WRONG))
def test_a_wrong_option_is_told_to_who_gives_it(option: str) -> None:
    for value in WRONG[option]:
        with pytest.raises(ConfigError, match=option) as error:
            mcpsync.Client(COMMAND, **{option: value})
        assert "\n" not in str(error.value)


def test_the_value_of_a_variable_is_not_shown_when_it_is_wrong() -> None:
    with pytest.raises(ConfigError) as error:
        mcpsync.Client(COMMAND, env={"TOKEN": b"sekret"})
    assert "sekret" not in str(error.value)


@pytest.mark.parametrize("seconds", [1e7, 1e10, 1e300, 10**400])
def test_timeouts_that_no_lock_and_no_poll_can_wait_for(tmp_path: Path, seconds: float) -> None:
    every = dict.fromkeys(Timeouts.__slots__, seconds)
    server = peer(tmp_path)
    client = mcpsync.connect(server.command, timeouts=Timeouts(**every))
    assert client.call_tool("echo", {"text": "on"}, timeout=seconds).text == "on"
    assert client.submit("echo", {"text": "on"}, timeout=seconds).result(10).text == "on"
    assert client.list_tools(timeout=Timeouts(**every))
    client.close(seconds)
    assert client.state == "closed"
    server.wait_ended()


def test_a_deadline_is_never_too_far_to_be_waited_for() -> None:
    lock = threading.Lock()
    for seconds in (1e10, float("inf"), 10**400):
        left = Deadline(seconds).remaining()
        assert left is not None and left < threading.TIMEOUT_MAX and left * 1000 < 2**31
        assert lock.acquire(timeout=left)
        lock.release()


def test_what_a_server_says_is_one_line_that_can_be_printed() -> None:
    hostile = "no\r\n\x1b[31mpwned\u202e\ud800\u2028\0end"
    errors = [
        RpcError(hostile, code=-1, server=hostile, method=hostile, request_id=1),
        ToolError(hostile, result=None, server="s", tool="t"),
        mcpsync.ConnectionLost(hostile),
        ConfigError(hostile, file=hostile, path=hostile, nearest="x"),
    ]
    for error in errors:
        text = str(error)
        assert text.isprintable() and text.encode()
        assert "pwned" in text and "end" in text
        assert str(pickle.loads(pickle.dumps(error))) == text
    assert str(RpcError("Zażółć 名前", code=5)) == "Zażółć 名前 (error 5)"


class Unspeakable(Exception):
    """An error that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_an_error_that_cannot_be_shown_is_named() -> None:
    assert described(Unspeakable()) == "Unspeakable"
    assert described(ValueError("x")) == "ValueError: x"


@pytest.mark.timed
@pytest.mark.parametrize("callbacks", ["pool", "caller"])
def test_a_handler_that_raises_what_cannot_be_shown(
    tmp_path: Path, callbacks: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server gets its answer all the same; else the call would stand still until nobody can answer any more."""

    def answer(request: Any) -> Any:
        raise Unspeakable

    logging.getLogger("mcpsync").addFilter(_without_traceback)
    try:
        server = peer(tmp_path, era="legacy")
        with mcpsync.connect(server.command, elicitation=answer, callbacks=callbacks) as client:
            question = {"mode": "form", "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
            began = time.monotonic()
            told = client.call_tool("ask", {"method": "elicitation/create", "params": question}, timeout=5).text
            assert time.monotonic() - began < 3
            assert "the client's handler failed: Unspeakable" in told
    finally:
        logging.getLogger("mcpsync").removeFilter(_without_traceback)


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = None  # pytest shows it with its repr
    return True


def test_unreadable_logs_and_progress_are_skipped_with_a_warning_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def chatter(server: Any, request: Any) -> str:
        token = request["params"]["_meta"]["progressToken"]
        levels: List[Any] = [5, [], None, {}]
        for level in levels:
            server.notify("notifications/message", {"level": level, "data": "x"})
        server.notify("notifications/message", {"level": "info", "data": "good"})
        amounts: List[Any] = ["x", None, [], {}, True]
        for progress in amounts:
            server.notify("notifications/progress", {"progressToken": token, "progress": progress})
        server.notify("notifications/progress", {"progressToken": token, "progress": 1})
        return "done"

    logs, progressed = Seen(), Seen()
    server = peer(tmp_path, chatter, era="legacy")
    with caplog.at_level(logging.WARNING), mcpsync.connect(server.command, name="odd", on_log=logs) as client:
        for _ in range(2):
            assert client.call_tool("chatter", on_progress=progressed).text == "done"
        logs.wait_count(2)
        progressed.wait_count(2)
    assert [message.data for message in logs.items] == ["good"] * 2
    assert [each.progress for each in progressed.items] == [1, 1]
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2, warnings
    assert all("'odd'" in warning and record.exc_info is None for warning, record in zip(warnings, caplog.records))
    assert {warning.split(": ")[2] for warning in warnings} == {"log message", "unreadable progress"}


@pytest.mark.timed
def test_the_function_for_stderr_holds_up_nobody(tmp_path: Path) -> None:
    """It may block, call the client, or end its thread."""
    gate, threads, pinged = threading.Event(), Seen(), Seen()

    def take(line: str) -> None:
        threads(threading.current_thread().name)
        if not pinged.items:
            client.ping()
            pinged(line)
            gate.wait(10)
        raise SystemExit(line)

    server = peer(tmp_path)
    client = mcpsync.connect(server.command, name="peer", stderr=take)
    logging.getLogger("mcpsync").addFilter(_without_traceback)
    try:
        client.call_tool("write_stderr", {"size": 80})
        pinged.wait_count(1)
        assert client.call_tool("echo", {"text": "on"}, timeout=5).text == "on"
        gate.set()
        for _ in range(3):
            client.call_tool("write_stderr", {"size": 80})
        threads.wait_count(4)
        assert client.call_tool("echo", {"text": "still on"}, timeout=5).text == "still on"
        assert all("reader" not in name for name in threads.items)
    finally:
        gate.set()
        client.close()
        logging.getLogger("mcpsync").removeFilter(_without_traceback)


def works_without_a_working_directory(folder: str, command: List[str]) -> None:
    import os
    import tempfile

    import mcpsync

    gone = tempfile.mkdtemp(dir=folder)
    os.chdir(gone)
    os.rmdir(gone)
    with mcpsync.connect(command) as client:
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    with mcpsync.connect(["sh", "-c", 'exec "$0" "$@"', *command], path_prepend=["."]) as client:
        assert client.call_tool("echo", {"text": "on"}).text == "on"
    try:
        mcpsync.connect(["./server"])
    except mcpsync.ConnectFailed as error:
        print(error)


def test_the_working_directory_of_the_program_is_gone(tmp_path: Path) -> None:
    text = "server 'server': cannot start the server: there is no file './server'"
    run(works_without_a_working_directory, str(tmp_path), peer(tmp_path).command).check(text)


def test_a_config_file_that_never_ends() -> None:
    with pytest.raises(ConfigError, match="larger than 64 MB"):
        load("/dev/zero")


def test_a_folder_of_path_prepend_may_be_a_path(tmp_path: Path) -> None:
    with pytest.raises(ConnectFailed, match=str(tmp_path)):
        mcpsync.connect(["no-such-program"], path_prepend=[tmp_path])


def test_a_secret_in_a_broken_message_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def blurt(server: Any, request: Any) -> str:
        import os

        server.write(('{"jsonrpc": %s\n' % os.environ["API_KEY"]).encode())
        server.notify("notifications/cancelled", {"requestId": os.environ["API_KEY"]})
        return "done"

    server = peer(tmp_path, blurt)
    with caplog.at_level(logging.DEBUG), mcpsync.connect(server.command, env={"API_KEY": "sekret-value"}) as client:
        assert client.call_tool("blurt").text == "done"
    shown = [record.getMessage() for record in caplog.records]
    assert any("invalid JSON" in message and "***" in message for message in shown)
    assert not any("sekret" in message for message in shown)


@pytest.mark.parametrize("info", [None, 5, {}, {"name": 5}, {"name": "x", "version": []}])
def test_a_server_that_introduces_itself_wrongly(tmp_path: Path, info: Any) -> None:
    answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    server = peer(tmp_path, era="legacy", opening={"initialize": {"result": answer}})
    with mcpsync.connect(server.command) as client:
        assert client.server_info is None
        assert client.call_tool("echo", {"text": "on"}).text == "on"


def test_a_server_forges_no_lines_in_the_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def forge(server: Any, request: Any) -> str:
        import os

        hostile = "\x1b]0;title\x07\nERROR root: forged \ud800 with " + os.environ["API_KEY"]
        server.notify("notifications/message", {"level": "error", "logger": "a\nb", "data": hostile})
        server.write(b"\x1b[31mred\rcarriage\n", 2)
        return "done"

    server = peer(tmp_path, forge, era="legacy")
    with caplog.at_level(logging.DEBUG), mcpsync.connect(server.command, env={"API_KEY": "sekret-value"}) as client:
        assert client.call_tool("forge").text == "done"
    shown = [record.getMessage() for record in caplog.records if record.name.startswith("mcpsync.server.")]
    assert len(shown) == 2
    assert all(message.isprintable() and "sekret" not in message for message in shown)
    assert any("forged" in message and "***" in message for message in shown)
    assert any("red carriage" in message for message in shown)
