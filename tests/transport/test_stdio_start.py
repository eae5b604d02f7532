"""Starting a server: what can be wrong with a command, and what a process around it must not matter."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout, ProcessExited
from mcpsync.transport.base import Frame
from mcpsync.transport.stdio import StdioTransport
from tests.transport.harness import ECHO, connected, descriptors, python, running, until

SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ))); input()"


def refused(command: Any, **options: Any) -> ConnectFailed:
    before = descriptors()
    with pytest.raises(ConnectFailed) as caught:
        StdioTransport(command, server_name="files", **options).open(Deadline(5))
    assert descriptors() == before
    assert caught.value.server == "files"
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ([], "empty"),
        (["  "], "empty"),
        ("npx -y thing", "list of strings"),
        (["a", 3], "argument 1"),
        (["a", "b\0c"], "NUL"),
        (["no-such-program-of-ours"], "'no-such-program-of-ours' not found"),
        (["no such program"], "items of their own"),
        (["/no/such/file"], "no file '/no/such/file'"),
        (["/"], "is a directory"),
        (["~/server"], "no file"),
    ],
)
def test_a_command_that_is_none_is_explained(command: Any, part: str) -> None:
    assert part in str(refused(command))


@pytest.mark.parametrize(
    ("name", "remedy"), [("npx", "Node.js"), ("node", "Node.js"), ("uvx", "uv"), ("uv", "uv"), ("docker", "Docker")]
)
def test_a_missing_launcher_says_what_to_install(name: str, remedy: str) -> None:  # A7
    text = str(refused([name], env={"PATH": "/nowhere"}))
    assert "install " + remedy in text
    assert "/nowhere" in text


def test_a_file_without_execute_bit_is_named(tmp_path: Path) -> None:  # A7
    script = tmp_path / "server"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    assert "is not executable" in str(refused([str(script)]))
    assert "is not executable" in str(refused(["server"], env={"PATH": str(tmp_path)}))


@pytest.mark.parametrize(
    ("text", "part"), [("echo no first line", "#!"), ("#!/no/such/interpreter\n", "interpreter"), ("", "#!")]
)
def test_a_script_that_the_system_cannot_run_is_explained(tmp_path: Path, text: str, part: str) -> None:
    script = tmp_path / "server"
    script.write_text(text)
    script.chmod(0o755)
    assert part in str(refused([str(script)]))


def test_a_working_directory_must_be_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert "does not exist" in str(refused(["/bin/cat"], cwd=str(tmp_path / "none")))
    assert "not a directory" in str(refused(["/bin/cat"], cwd=file))
    assert "must be a path" in str(refused(["/bin/cat"], cwd=3))


@pytest.mark.parametrize(
    ("env", "part"),
    [({"A": 1}, "'A' must be a string"), ({3: "x"}, "named by a int"), ({"A=B": "x"}, "name"), ({"A": "\0"}, "NUL")],
)
def test_a_variable_must_be_one(env: Any, part: str) -> None:
    assert part in str(refused(["/bin/cat"], env=env))


def test_arguments_that_are_too_long_are_explained() -> None:
    assert "too long" in str(refused(["/bin/cat", "x" * 4_000_000]))


def test_no_descriptors_left_is_explained() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 3, hard))
    try:
        with pytest.raises(ConnectFailed, match=r"[Tt]oo many open files"):
            StdioTransport(["/bin/cat"]).open(Deadline(5))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_unknown_environment_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="env_mode"):
        StdioTransport(["/bin/cat"], env_mode="all")


def test_a_deadline_that_has_passed_starts_nothing() -> None:
    with pytest.raises(ConnectTimeout):
        StdioTransport(["/bin/cat"]).open(Deadline(0))


def test_a_transport_is_opened_once_and_sends_only_when_open() -> None:
    transport = StdioTransport(["/bin/cat"])
    with pytest.raises(ConnectionLost, match="not open"):
        transport.send(Frame(b"{}"), None, Deadline(1))
    assert (transport.pid, transport.exit_code, transport.stderr_tail) == (None, None, "")
    transport.close(Deadline(1))
    with pytest.raises(ConnectFailed, match="build a new one"):
        transport.open(Deadline(1))


def test_listening_is_for_other_transports() -> None:
    with connected(["/bin/cat"]) as connection:
        assert not connection.transport.exchange_like
        with pytest.raises(ConnectionLost):
            connection.transport.listen(Frame(b"{}"), Deadline(1))


def test_programs_are_found_on_the_servers_own_path(tmp_path: Path) -> None:
    tool = tmp_path / "my-server"
    tool.write_text("#!/bin/sh\nexec cat\n")
    tool.chmod(0o755)
    for options in ({"env": {"PATH": "%s:/bin:/usr/bin" % tmp_path}}, {"path_prepend": [str(tmp_path)]}):
        with connected(["my-server"], **options) as connection:
            connection.send(b"{}")
            assert connection.sink.next() == b"{}"


def test_a_relative_program_is_found_from_the_servers_directory(tmp_path: Path) -> None:
    tool = tmp_path / "server"
    tool.write_text("#!/bin/sh\npwd -P >&2\nexec cat\n")
    tool.chmod(0o755)
    with connected(["./server"], cwd=tmp_path) as connection:
        connection.send(b"{}")
        connection.sink.next()
        assert until(lambda: connection.transport.stderr_tail == str(tmp_path.resolve()))  # of the two, either is first


def test_a_server_that_dies_at_once_is_quoted() -> None:  # B2
    start = time.monotonic()
    with connected(python("import sys; print('no such database', file=sys.stderr); sys.exit(2)")) as connection:
        loss = connection.sink.loss()
        assert time.monotonic() - start < 1
        assert isinstance(loss, ProcessExited)
        assert (loss.exit_code, loss.stderr_tail) == (2, "no such database")
        assert "exited with code 2; stderr: no such database" in str(loss)
        with pytest.raises(ProcessExited, match="no such database"):
            connection.send(b"{}")
        assert connection.transport.exit_code == 2


def test_a_server_that_explains_itself_on_stdout_is_quoted_too() -> None:
    with connected(python("print('usage: server [--flag]'); raise SystemExit(64)")) as connection:
        assert str(connection.sink.loss()).endswith("code 64; stdout: usage: server [--flag]")


def test_a_server_killed_by_a_signal_says_so() -> None:
    with connected(python("import os; os.kill(os.getpid(), 9)")) as connection:
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == -9
        assert "SIGKILL" in str(loss)


def environment_of(**options: Any) -> Dict[str, str]:
    with connected(python(SHOW_ENVIRONMENT), **options) as connection:
        shown: Dict[str, str] = json.loads(connection.sink.next())
        return shown


def test_the_environment_of_each_mode(monkeypatch: pytest.MonkeyPatch) -> None:  # C8, A15
    for name in ("MY_API_KEY", "PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "/parent's own")
    monkeypatch.setenv("LC_TIME", "C")
    safe = environment_of(env={"K": "v"})
    assert safe["PATH"] == os.environ["PATH"]
    assert (safe["K"], safe["LC_TIME"]) == ("v", "C")
    assert not {"MY_API_KEY", "PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"} & set(safe)
    bare = environment_of(env={"K": "v"}, env_mode="none")
    assert {"K", "MCPSYNC_SERVER"} <= set(bare) <= {"K", "MCPSYNC_SERVER", "LC_CTYPE", "PWD"}
    monkeypatch.delenv("PYTHONHOME")
    whole = environment_of(env={"K": "v"}, env_mode="inherit")
    assert (whole["MY_API_KEY"], whole["K"]) == ("/parent's own", "v")


def test_the_marker_of_an_outer_server_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSYNC_SERVER", "outer")
    assert environment_of()["MCPSYNC_SERVER"].startswith("outer/")


SURROUNDINGS = """
import sys, threading
sys.stderr = None
sys.executable = None
from mcpsync.deadline import Deadline
from mcpsync.transport.stdio import StdioTransport
from mcpsync.transport.base import Frame
class Sink:
    def frame(self, data, stream): got.append(data); ready.set()
    def alive(self, stream): pass
    def lost(self, cause): got.append(cause); ready.set()
    def warn(self, kind, detail): pass
got, ready = [], threading.Event()
transport = StdioTransport(["/bin/sh", "-c", "echo noise >&2; exec cat"])
transport.open(Deadline(10))
reader = threading.Thread(target=transport.run, args=(Sink(),))
reader.start()
transport.send(Frame(b"{}"), None, Deadline(10))
ready.wait(10)
transport.close(Deadline(10))
reader.join()
print(got, "asyncio" in sys.modules, "requests" in sys.modules)
"""


def test_a_host_without_stderr_and_executable_can_start_servers() -> None:  # A15
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SURROUNDINGS],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=60,
    )
    assert done.stdout.decode().split() == ["[b'{}']", "False", "False"]


def test_descriptors_above_1024_work() -> None:  # A16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1300:
        pytest.skip("the system allows only %d descriptors" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1300), hard))
    taken: List[int] = []
    try:
        while not taken or taken[-1] < 1100:
            taken.append(os.open(os.devnull, os.O_RDONLY))
        with connected(python("import sys; sys.stderr.write('x\\n')\n" + ECHO)) as connection:
            connection.send(b"{}")
            assert connection.sink.next() == b"{}"
            connection.send(b'{"a":"%s"}' % (b"x" * 100_000))
            assert len(connection.sink.next()) == 100_008
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_mode_of_stdin_is_ours_alone() -> None:
    code = "import os; print('{\"blocking\": %d}' % all(map(os.get_blocking, (0, 1, 2)))); input()"
    with connected(python(code)) as connection:
        assert connection.sink.next() == b'{"blocking": 1}'


def test_a_server_gets_a_session_of_its_own_and_no_other_descriptor() -> None:
    code = (
        "import os; print('{%d, %d, %d}' % (os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(),"
        " len(os.listdir('/proc/self/fd')))); input()"
    )
    with connected(python(code)) as connection:
        assert connection.sink.next() == b"{1, 1, 4}"  # the fourth is the one that lists


def test_execute_bits_are_judged_as_the_system_does(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        (folder / "tool").write_text("#!/bin/sh\nexec cat\n")
    (second / "tool").chmod(stat.S_IRWXU)
    with connected(["tool"], env={"PATH": "%s:%s:/bin" % (first, second)}) as connection:
        connection.send(b"{}")
        assert connection.sink.next() == b"{}"


def test_a_close_while_it_is_opened_leaves_nothing() -> None:
    """``open`` is held up where it asks for the working directory."""
    asked, go_on = threading.Event(), threading.Event()

    class Slow:
        def __fspath__(self) -> str:
            asked.set()
            go_on.wait(20)
            return "/"

    before = descriptors()
    transport = StdioTransport(["/bin/cat"], cwd=Slow())
    caught: List[BaseException] = []

    def start() -> None:
        try:
            transport.open(Deadline(20))
        except ConnectFailed as error:
            caught.append(error)

    opening = threading.Thread(target=start)
    opening.start()
    assert asked.wait(20)
    start_of_close = time.monotonic()
    transport.close(Deadline(0.1))
    assert time.monotonic() - start_of_close < 1
    closing = threading.Thread(target=transport.close, args=(Deadline(20),))
    closing.start()
    go_on.set()
    opening.join(20)
    closing.join(20)
    assert "closed while" in str(caught[0])
    assert transport.pid is not None
    assert not running(transport.pid)
    assert descriptors() == before


def test_a_failure_after_the_start_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread can be made for the wait where there is no pidfd."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    before = descriptors()
    with pytest.raises(ConnectFailed, match="can't start new thread"):
        StdioTransport(["/bin/cat"]).open(Deadline(5))
    assert descriptors() == before
