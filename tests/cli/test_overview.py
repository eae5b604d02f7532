"""status, doctor, and calls by the name that a model sees."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from tests.cli.command import mcpsync

DEMO: Dict[str, Any] = {"command": sys.executable, "args": ["-m", "mcpsync.demo"], "trust_level": "trusted"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    config = tmp_path / "mcp.json"
    servers = {
        "demo": DEMO,
        "other one": DEMO,
        "missing": {"command": "npx", "args": ["x"], "env": {"PATH": str(tmp_path)}},
        "off": {**DEMO, "disabled": True},
        "unset": {"command": "x", "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }
    config.write_text(json.dumps({"mcpServers": servers}))
    return config


@pytest.fixture
def home(tmp_path: Path) -> Dict[str, str]:
    return {"MCPSYNC_HOME": str(tmp_path)}


def test_status(file: Path, home: Dict[str, str]) -> None:
    done = mcpsync("status", "--config", str(file), env=home)
    assert done.returncode == 2
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines if line[0] != "other"] == [
        ["demo", "ready"],
        ["missing", "down"],
        ["off", "disabled"],
        ["unset", "invalid"],
    ]
    assert "which brings npx" in done.stdout
    assert "NOT_SET_ANYWHERE" in done.stdout


def test_status_of_the_file_in_the_state_folder(file: Path, home: Dict[str, str]) -> None:
    done = mcpsync("status", "--json", "--server", "demo", env=home)
    assert done.returncode == 0, done.stderr
    (server,) = json.loads(done.stdout)["servers"]
    assert (server["server"], server["state"], server["ready"]) == ("demo", "ready", True)
    assert server["tools"] > 0
    assert server["checks"][-1] == {"check": "tools", "result": "ok: %d" % server["tools"]}


@pytest.mark.parametrize(
    ("server", "code", "expected"),
    [
        ("demo", 0, ["demo: ready", "handshake  ok: revision", "tools      ok:"]),
        ("missing", 3, ["missing: down", "command  ", "which brings npx"]),
        ("off", 0, ["off: disabled", "switched off"]),
        ("unset", 2, ["unset: invalid", "NOT_SET_ANYWHERE"]),
    ],
)
def test_doctor(file: Path, home: Dict[str, str], server: str, code: int, expected: Any) -> None:
    done = mcpsync("doctor", "--config", str(file), "--server", server, env=home)
    assert done.returncode == code, done.stderr
    for text in expected:
        assert text in done.stdout


def test_doctor_of_one_that_ends_at_once(tmp_path: Path, home: Dict[str, str]) -> None:
    config = tmp_path / "mcp.json"
    script = "import sys; print('no key', file=sys.stderr); sys.exit(4)"
    config.write_text(json.dumps({"mcpServers": {"bad": {"command": sys.executable, "args": ["-c", script]}}}))
    done = mcpsync("doctor", env=home)
    assert done.returncode == 3
    assert "handshake" in done.stdout
    assert "exited with code 4; stderr: no key" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "--server", "demmo"], "has no server 'demmo' (did you mean 'demo'?)"),
        (["doctor", "--", "npx"], "doctor is for the servers of a config file: take away what stands behind --"),
        (["status", "demo"], "status takes no further words and not 'demo'"),
    ],
)
def test_wrong(file: Path, home: Dict[str, str], arguments: Any, message: str) -> None:
    done = mcpsync(*arguments, env=home)
    assert done.returncode == 2
    assert message in done.stderr


def test_no_file_at_all(tmp_path: Path) -> None:
    done = mcpsync("status", env={"MCPSYNC_HOME": str(tmp_path)})
    assert done.returncode == 2
    own = tmp_path / "mcp.json"
    assert done.stderr == "mcpsync: status: give --config FILE, or make %s with 'mcpsync add'\n" % own


def test_a_call_by_the_models_name(file: Path, home: Dict[str, str]) -> None:
    done = mcpsync("call", "mcp__demo__echo", "text=hello", "--config", str(file), env=home)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    listed = mcpsync("call", "mcp__other_one__echo_nothex", "--config", str(file), env=home)
    assert listed.returncode == 2
    assert "there is no tool 'mcp__other_one__echo_nothex' (did you mean 'mcp__other_one__echo_" in listed.stderr
    exposed = listed.stderr.partition("did you mean '")[2].partition("'")[0]
    done = mcpsync("call", exposed, "text=hello", "--json", "--config", str(file), env=home)
    assert json.loads(done.stdout)["server"] == "other one"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        (
            "mcp__nobody__echo",
            2,
            "no server goes with the name 'mcp__nobody__echo': there are demo, other one, missing",
        ),
        ("mcp__missing__echo", 3, "command 'npx' not found"),
        ("mcp__unset__echo", 2, "NOT_SET_ANYWHERE"),
    ],
)
def test_a_call_of_nobody(file: Path, home: Dict[str, str], name: str, code: int, message: str) -> None:
    done = mcpsync("call", name, "--config", str(file), env=home)
    assert done.returncode == code
    assert message in done.stderr
