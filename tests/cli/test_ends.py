"""How the command ends: exit codes, signals, broken pipes; and what it leaves behind: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any, List

import pytest

from tests.cli.command import DEMO, MCPSYNC, Terminal, config, environment, mcpsync, started
from tests.peers.scripted import peer


def a_failing_list(server: Any, request: Any, **params: Any) -> None:
    server.error(request, -32603, "no\x1b[2J list")


@pytest.mark.parametrize(
    ("words", "options", "code", "message"),
    [
        (["call", "outcome", "--args", '{"result": {"content": [], "isError": true}}'], {}, 1, "error: [the tool"),
        (["call", "outcom"], {}, 2, "the server has no tool 'outcom' (did you mean 'outcome'?)"),
        (["tools", "--protocol", "2025"], {}, 2, "protocol must be 'auto', "),
        (["tools"], {"exit_at_start": 7, "stderr": b"out of luck\n"}, 3, "exited with code 7; stderr: out of luck"),
        (["tools"], {"opening": {"initialize": {"error": {"code": -1, "message": "go"}}}}, 3, "agree to talk: go"),
        (["tools"], {"opening": {"initialize": {"result": {}}}}, 3, ""),
        (["tools"], {"opening": {"initialize": {"result": {"protocolVersion": "1999-01-01"}}}}, 3, "1999-01-01"),
        (["tools", "--timeout", "0.5"], {"opening": {"initialize": "silent"}}, 3, ""),
        (["call", "die"], {}, 3, "the server process exited with code 3; the server may have executed it"),
        (["call", "error", "code=-32000"], {}, 4, ": no (error -32000)"),
        (["call", "outcome", "--args", '{"result": 5}'], {}, 4, "neither a result object nor an error object"),
        (["tools", "--protocol", "modern"], {}, 3, ""),
        (["tools"], {"handlers": {"tools/list": "repeated_cursor"}}, 4, "tools/list: "),
        (["call", "silent", "--timeout", "1.5"], {}, 5, "no answer within 1.5 s"),
    ],
)  # fmt: skip
def test_exit_codes(tmp_path: Path, words: List[str], options: Any, code: int, message: str) -> None:
    server = peer(tmp_path, **{"era": "legacy", **options})
    done = mcpsync(*words, "--", *server.command)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("mcpsync: ")
    server.wait_ended()


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_during_a_call_cancels_it_and_ends_the_server(
    tmp_path: Path, era: str, number: signal.Signals, code: int
) -> None:
    server = peer(tmp_path, era=era)
    with started("call", "silent", "--json", "--", *server.command) as process:
        (call,) = server.wait_for("tools/call")
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert out == ""
    assert err == ("mcpsync: interrupted\n" if number == signal.SIGINT else "")
    (cancelled,) = server.received("notifications/cancelled")
    assert cancelled["params"]["requestId"] == call["id"]
    server.wait_ended()


def test_ctrl_c_while_connecting(tmp_path: Path) -> None:
    server = peer(tmp_path, opening={"initialize": "silent", "server/discover": "silent"})
    with started("ping", "--", *server.command) as process:
        server.wait_for("server/discover")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "mcpsync: interrupted\n")
    server.wait_ended()


def test_ctrl_c_while_several_servers_are_asked(tmp_path: Path) -> None:
    servers = [peer(tmp_path, handlers={"tools/list": "silent_method"}) for _ in range(3)]
    file = config(tmp_path, {"server-%d" % index: server.command for index, server in enumerate(servers)})
    with started("tools", "--config", file) as process:
        for server in servers:
            server.wait_for("tools/list")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "", "mcpsync: interrupted\n")
    for server in servers:
        server.wait_ended()


def test_a_second_ctrl_c_does_not_keep_a_stubborn_server_alive(tmp_path: Path) -> None:
    server = peer(tmp_path, ignore_eof=True, ignore_term=True)
    with started("call", "silent", "--", *server.command) as process:
        server.wait_for("tools/call")
        process.send_signal(signal.SIGINT)
        server.wait_for("notifications/cancelled")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "mcpsync: interrupted\n")
    server.wait_ended()


def test_ctrl_c_on_the_terminal_where_it_asks(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    words = '{"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": %s}}'
    server = peer(tmp_path, era="legacy")
    arguments = ["call", "ask", "--args", words % str(schema).replace("'", '"'), "--", *server.command]
    with Terminal(*arguments) as terminal:
        terminal.read_until("Who?")
        terminal.read_until("name: ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    assert len(server.received("notifications/cancelled")) == 1
    assert "Traceback" not in terminal.seen
    server.wait_ended()


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, more: List[str]) -> None:
    server = peer(tmp_path, handlers={"tools/list": "three_pages"})
    reader, writer = os.pipe()
    os.close(reader)
    command = [*MCPSYNC, "tools", *more, "--", *server.command]
    try:
        done = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, env=environment(), check=False, timeout=30
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_of_the_help_that_goes_away() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" | true', "sh", *MCPSYNC, "--help"],
        stderr=subprocess.PIPE, env=environment(), check=False, timeout=30,
    )  # fmt: skip
    assert done.stderr == b""


def test_a_full_disk_is_said_in_one_line() -> None:
    # without a measuring of coverage, which flushes stdout once more at the end, and changes the exit code by that
    env = {name: value for name, value in environment().items() if not name.startswith("COVERAGE")}
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*MCPSYNC, "--version"],
            stdout=full, stderr=subprocess.PIPE, env=env, check=False, timeout=30, encoding="utf-8",
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "mcpsync: the output cannot be written: No space left on device\n")


def test_closed_output_streams_are_no_error() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&- 2>&-', "sh", *MCPSYNC, "call", "fail", *DEMO],
        env=environment(), check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 1


def test_a_fault_of_the_program_itself_is_told_from_the_other_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mcpsync.cli import listings, main

    def broken(*_: Any) -> int:
        raise KeyError("\x1bkey")

    monkeypatch.setattr(listings, "run_listing", broken)
    assert main(["ping", "--", "x"]) == 70
    assert capsys.readouterr().err == "mcpsync: internal error: KeyError: '\\x1bkey'\n"
    assert main(["ping", "--verbose", "--", "x"]) == 70
    assert "Traceback" in capsys.readouterr().err
