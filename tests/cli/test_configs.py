"""Commands on config files: they start nothing, and write variables as variables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from mcpsync.config import Approvals, load
from tests.cli.command import Terminal, mcpsync


@pytest.fixture
def home(tmp_path: Path) -> Dict[str, str]:
    return {"MCPSYNC_HOME": str(tmp_path / "home"), "TOKEN": "s3cret"}


def run(home: Dict[str, str], *arguments: str, code: int = 0) -> Any:
    done = mcpsync(*arguments, env=home)
    assert done.returncode == code, done.stderr
    return done


def test_a_server_comes_and_goes(home: Dict[str, str]) -> None:
    file = Path(home["MCPSYNC_HOME"]) / "mcp.json"
    added = run(home, "add", "web", "--env", "TOKEN", "--env", "A=b", "--timeout", "30", "--", "npx", "-y", "srv")
    assert added.stdout == "added: web in %s\n" % file
    run(home, "add", "api", "--url", "https://a.example/m", "--header", "Authorization: Bearer ${TOKEN}")
    assert json.loads(file.read_text()) == {
        "mcpServers": {
            "web": {"command": "npx", "args": ["-y", "srv"], "env": {"TOKEN": "${TOKEN}", "A": "b"}, "timeout": 30},
            "api": {"url": "https://a.example/m", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        }
    }
    if sys.platform != "win32":
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert run(home, "servers").stdout.splitlines() == [
        "%s: 2 servers" % file,
        "  web  enabled  stdio  npx",
        "  api  enabled  auto   https://a.example",
    ]
    again = run(home, "add", "web", "--", "x", code=2)
    assert again.stderr == "mcpsync: %s: has a server 'web' already: remove it first, or change it\n" % file
    run(home, "remove", "web")
    listed = json.loads(run(home, "servers", "--json").stdout)
    assert [each["name"] for each in listed["servers"]] == ["api"]
    missing = run(home, "remove", "apis", code=2)
    assert missing.stderr == "mcpsync: %s: has no server 'apis' (did you mean 'api'?)\n" % file


def test_what_is_wrong_with_a_new_server_is_said(home: Dict[str, str]) -> None:
    file = Path(home["MCPSYNC_HOME"]) / "mcp.json"
    added = run(home, "add", "web", "--url", "ftp://a.example/m")
    assert added.stdout == "added: web in %s\n" % file
    assert added.stderr.startswith("mcpsync: error: %s:4: mcpServers.web.url: must be an http or https URL" % file)
    unset = run(home, "add", "api", "--url", "https://a.example/m", "--header", "X: ${UNSET_TOKEN}").stderr
    assert "server 'api' needs a variable that is not set: UNSET_TOKEN" in unset
    assert "web" not in unset
    assert run(home, "add", "good", "--", "x").stderr == ""


def test_a_profile_has_a_file_of_its_own(home: Dict[str, str]) -> None:
    run({**home, "MCPSYNC_PROFILE": "work"}, "add", "web", "--", "x")
    assert (Path(home["MCPSYNC_HOME"]) / "profiles" / "work" / "mcp.json").is_file()


def test_servers_of_another_program_are_copied_without_its_permissions(home: Dict[str, str], tmp_path: Path) -> None:
    source = tmp_path / ".gemini" / "settings.json"
    source.parent.mkdir()
    source.write_text(
        '{"mcpServers": {"a": {"httpUrl": "https://a.example", "trust": true, "headers": {"K": "$TOKEN"}},'
        ' "b": {"command": "x", "timeout": 5000}, "c": {}}}'
    )
    done = run(home, "import", str(source), code=2)
    file = Path(home["MCPSYNC_HOME"]) / "mcp.json"
    assert done.stdout == "imported: a, b in %s\n" % file
    assert "mcpServers.a.trust: is not imported" in done.stderr
    assert "mcpServers.c: needs 'command'" in done.stderr
    assert json.loads(file.read_text())["mcpServers"] == {
        "a": {"type": "http", "url": "https://a.example", "headers": {"K": "${TOKEN}"}, "timeout": 600},
        "b": {"command": "x", "args": [], "timeout": 5.0},
    }


def test_check_says_all_that_is_wrong(home: Dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {\n "a": {"command": "x", "comand": 1},\n "b": {"url": "ftp://b"}}}')
    done = run(home, "config", "check", str(path), code=2)
    assert done.stdout.splitlines() == [
        "warning: %s:2: mcpServers.a.comand: unknown key (did you mean 'command'?)" % path,
        "error: %s:3: mcpServers.b.url: must be an http or https URL with a host, or that of a Unix socket: "
        "unix:///path/to.sock#/mcp" % path,
        "%s: layout mcpServers, 2 servers, 1 to be started, 1 error" % path,
    ]
    found = json.loads(run(home, "config", "check", str(path), "--json", code=2).stdout)["diagnostics"]
    assert [(each["line"], each["severity"], each["nearest"]) for each in found] == [
        (2, "warning", "command"),
        (3, "error", None),
    ]
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert run(home, "config", "check", "--config", str(path)).stdout.endswith("1 to be started, 0 errors\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "a"], "add: give --url URL, or -- and the command that starts the server"),
        (["add", "a", "--url", "https://a.example", "--", "x"], "add: give --url URL, or -- and the command"),
        (["add", "a", "--header", "A: b", "--", "x"], "add: --header goes with --url"),
        (["add", "a", "--url", "https://a.example", "--env", "A"], "add: --env is for a server that is started"),
        (["add", "a b", "--", "x"], "a server's name is of letters, digits, '.', '-' and '_', at most 64"),
        (["remove", "a", "--", "x"], "remove takes no server command"),
        (["config", "chek"], "config: there is 'mcpsync config check [FILE]' and 'mcpsync config approve FILE'"),
        (["add", "a", "--dialect", "codx", "--", "x"], "there is no layout 'codx'"),
        (["servers"], "there is no such file"),
    ],
)
def test_wrong_use_is_said_in_one_line(home: Dict[str, str], arguments: Any, message: str) -> None:
    done = run(home, *arguments, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def _project(folder: Path, command: str = "npx") -> str:
    path = folder / "repo" / ".mcp.json"
    path.parent.mkdir(exist_ok=True)
    servers = {
        "a": {"command": command, "args": ["${TOKEN}", "\x1b[2J"], "env": {"KEY": "${TOKEN}"}},
        "b": {"url": "https://a.example/secret", "headers": {"X-Key": "k3y"}},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def test_a_project_file_is_approved_as_it_is_until_it_changes(home: Dict[str, str], tmp_path: Path) -> None:
    file = _project(tmp_path)
    hint = "found in a project, it starts nothing before: mcpsync config approve %s" % file
    assert hint in run(home, "config", "check", file).stdout
    refused = run(home, "config", "approve", file, code=2)
    assert "there is nobody to ask here: give --yes" in refused.stderr
    done = run(home, "config", "approve", file, "--yes")
    assert done.stdout == "%s: approved, until it changes\n" % file
    assert "a: npx" in done.stderr and "(sets KEY)" in done.stderr
    assert "b: https://a.example (sets X-Key)" in done.stderr
    assert not any(hidden in done.stderr for hidden in ("s3cret", "k3y", "\x1b", "/secret"))
    approvals = Approvals(str(Path(home["MCPSYNC_HOME"]) / "approved.json"))
    assert approvals(file, load(file, environ=home).digest)
    assert run(home, "config", "approve", file).stdout == "%s: is approved already\n" % file
    assert hint not in run(home, "config", "check", file).stdout
    _project(tmp_path, "other")
    assert hint in run(home, "config", "check", file).stdout


@pytest.mark.parametrize("answer, code", [("y", 0), ("no", 2), ("", 2)])
def test_a_person_is_asked_to_approve(home: Dict[str, str], tmp_path: Path, answer: str, code: int) -> None:
    with Terminal("config", "approve", _project(tmp_path), env=home) as terminal:
        terminal.read_until("Approve this file as it is now? [y/N] ")
        terminal.type(answer + "\n")
        assert terminal.end() == code


def test_what_config_takes(home: Dict[str, str]) -> None:
    assert "FILE is missing" in run(home, "config", "approve", code=2).stderr
    assert "--yes is of 'config approve'" in run(home, "config", "check", "--yes", code=2).stderr
    assert "there is 'mcpsync config check" in run(home, "config", "chek", code=2).stderr
