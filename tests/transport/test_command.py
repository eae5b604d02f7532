"""The command lines of Windows, which can be checked anywhere, and the names of failures."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mcpsync.errors import ConnectFailed
from mcpsync.transport.command import batch_command_line, checked_command, explain_start_failure, find_program, prepare


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("")
    path.chmod(0o755)
    return str(path)


def test_paths_are_arguments_too(tmp_path: Path) -> None:
    assert checked_command([Path("/bin/cat"), "x"], "s") == ["/bin/cat", "x"]


def test_pathext_decides_what_a_bare_name_means(tmp_path: Path) -> None:
    command = program(tmp_path, "npx.cmd")
    program(tmp_path, "npx")  # what npm puts beside it for other shells
    environ = {"PATH": str(tmp_path), "PATHEXT": ".EXE;.CMD"}
    assert find_program("npx", environ, None, "s", windows=True) == command
    assert find_program("npx.cmd", environ, None, "s", windows=True) == command
    with pytest.raises(ConnectFailed, match="Node"):
        find_program("npx", {"PATH": str(tmp_path), "PATHEXT": ".EXE"}, None, "s", windows=True)


def test_a_batch_file_is_run_by_its_interpreter(tmp_path: Path) -> None:
    batch = program(tmp_path, "npx.cmd")
    launch = prepare(
        ["npx", "-y", "a & b", "C:\\dir\\"], {"PATH": str(tmp_path), "COMSPEC": "C:\\cmd.exe"}, None, "s", windows=True
    )
    assert launch.program == "C:\\cmd.exe"
    assert launch.arguments == 'cmd.exe /d /e:on /v:off /s /c ""%s" "-y" "a & b" "C:\\dir\\\\""' % batch


@pytest.mark.parametrize("argument", ['"&calc.exe', "%PATH%", "a\nb", "a\rb"])
def test_what_no_quoting_makes_safe_is_refused(argument: str) -> None:
    with pytest.raises(ConnectFailed, match="batch file"):
        batch_command_line("C:\\npx.cmd", ["-y", argument], "s")


def test_a_program_is_started_as_it_is(tmp_path: Path) -> None:
    path = program(tmp_path, "server")
    launch = prepare([path, "a b", "%x%"], {}, str(tmp_path), "s")
    assert launch == ([path, "a b", "%x%"], path)


def test_without_a_path_the_systems_own_is_used() -> None:
    assert os.path.basename(find_program("sh", {}, None, "s")) == "sh"
    with pytest.raises(ConnectFailed, match="the default path"):
        find_program("no-such-thing", {}, None, "s")


def test_an_empty_entry_of_the_path_is_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "tool")
    monkeypatch.chdir(tmp_path)
    assert os.path.realpath(find_program("tool", {"PATH": ":/nowhere"}, None, "s")) == os.path.realpath(path)


@pytest.mark.parametrize(
    ("number", "part"), [(errno.EACCES, "noexec"), (errno.EAGAIN, "no room"), (errno.EIO, "put/output error")]
)
def test_failures_of_the_system_are_explained(number: int, part: str) -> None:
    text = explain_start_failure(OSError(number, os.strerror(number)), "/x", lambda shown: shown.replace("/x", "/y"))
    assert part in text
    assert "'/y'" in text
