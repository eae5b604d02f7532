"""On a terminal: questions, progress, tables; and servers that would like to write on it themselves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.cli.command import DEMO, Terminal, environment, mcpsync
from tests.peers.scripted import Peer, peer

PLAIN = {"NO_COLOR": "1"}
needs_rich = pytest.mark.skipif(find_spec("rich") is None, reason="the extra 'cli' is not installed")

# --- questions


def test_a_person_is_asked_again_until_the_answer_will_do() -> None:
    with Terminal("call", "greet", *DEMO, env=PLAIN) as terminal:
        terminal.read_until("server 'python' asks (Ctrl-D declines):\nWhat is your name?\n")
        terminal.read_until("Your name: ")
        terminal.type("\n")
        terminal.read_until("an answer is required\n  Your name: ")
        terminal.type("x" * 51 + "\n")
        terminal.read_until("must have at most 50 characters\n  Your name: ")
        terminal.type("Grace\n")
        terminal.read_until("Politely? (yes or no; optional) [yes]: ")
        terminal.type("perhaps\n")
        terminal.read_until("must be yes or no\n")
        terminal.type("no\n")
        assert terminal.end() == 0
    assert terminal.seen.endswith("Hi, Grace!\n")


def test_defaults_are_taken_with_enter() -> None:
    with Terminal("call", "greet", *DEMO, env=PLAIN) as terminal:
        terminal.read_until("Your name: ")
        terminal.type("Grace\n")
        terminal.read_until("[yes]: ")
        terminal.type("\n")
        assert terminal.end() == 0
    assert terminal.seen.endswith("Good day, Grace!\n")


def test_ctrl_d_declines() -> None:
    with Terminal("call", "greet", *DEMO, env=PLAIN) as terminal:
        terminal.read_until("Your name: ")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert terminal.seen.endswith("No name, no greeting.\n")


def asking(tmp_path: Path, params: Dict[str, Any]) -> List[str]:
    server = peer(tmp_path, era="legacy")
    arguments = {"method": "elicitation/create", "params": params}
    return ["call", "ask", "--args", json.dumps(arguments), "--", *server.command]


def test_every_kind_of_field(tmp_path: Path) -> None:
    properties = {
        "size": {"type": "integer", "title": "Size", "minimum": 1},
        "share": {"type": "number", "description": "between 0 and 1"},
        "level": {"type": "string", "enum": ["low", "high"]},
        "titled": {"type": "string", "oneOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}]},
        "many": {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}, "default": ["z"]},
        "skipped": {"type": "string"},
    }
    schema = {"type": "object", "properties": properties, "required": ["size", "share", "level", "titled", "many"]}
    with Terminal(*asking(tmp_path, {"message": "Fill in", "requestedSchema": schema}), env=PLAIN) as terminal:
        for label, text in (
            ("Size: ", "many"),
            ("must be a number\n  Size: ", "0"),
            ("must be at least 1\n  Size: ", "3"),
            ("share (between 0 and 1): ", "NaN"),
            ("must be a finite number\n  share (between 0 and 1): ", "0.5"),
            ("level (one of: low, high): ", "middle"),
            ("must be one of 'low', 'high'\n  level (one of: low, high): ", "high"),
            ("titled (one of: a (Alpha), b (Beta)): ", "b"),
            ("many (several, with commas between: x, y, z) [z]: ", "x, y"),
            ("skipped (optional): ", ""),
        ):
            terminal.read_until(label)
            terminal.type(text + "\n")
        assert terminal.end() == 0
    answer = json.loads(terminal.seen.splitlines()[-1])
    assert answer["result"]["content"] == {"size": 3, "share": 0.5, "level": "high", "titled": "b", "many": ["x", "y"]}


@pytest.mark.parametrize(("text", "action"), [("yes\n", "accept"), ("no\n", "decline"), ("\x04", "decline")])
def test_a_url_is_shown_and_never_opened(tmp_path: Path, text: str, action: str) -> None:
    params = {"message": "Sign in", "mode": "url", "url": "https://example.com/\u202ex", "elicitationId": "1"}
    with Terminal(*asking(tmp_path, params), env=PLAIN) as terminal:
        terminal.read_until("in a browser of yours: https://example.com/\\u202ex\n")
        terminal.read_until("Will you? (yes or no): ")
        terminal.type(text)
        assert terminal.end() == 0
    assert '"%s"' % action in terminal.seen


@pytest.mark.parametrize(("text", "action"), [("yes\n", "accept"), ("no\n", "decline")])
def test_a_form_without_fields_is_agreed_to_or_not(tmp_path: Path, text: str, action: str) -> None:
    params = {"message": "Delete it?", "requestedSchema": {"type": "object", "properties": {}}}
    with Terminal(*asking(tmp_path, params), env=PLAIN) as terminal:
        terminal.read_until("Do you agree? (yes or no): ")
        terminal.type(text)
        assert terminal.end() == 0
    assert '"%s"' % action in terminal.seen


# --- progress and tables


def test_progress_is_drawn_without_escape_sequences_and_wiped() -> None:
    with Terminal("call", "count", "n=3", "delay=0.1", *DEMO, env=PLAIN) as terminal:
        assert terminal.end() == 0
    assert "\r[##########--------------------] 1/3 counted to 1 of 3" in terminal.seen
    assert "[##############################] 3/3" in terminal.seen
    assert re.search(r"\r +\rcounted to 3\n$", terminal.seen)
    assert "\x1b" not in terminal.seen


def test_a_dumb_terminal_gets_no_progress() -> None:
    with Terminal("call", "count", "n=2", "delay=0", *DEMO, env={"TERM": "dumb"}) as terminal:
        assert terminal.end() == 0
    assert terminal.seen == "counted to 2\n"


def test_a_table_is_cut_at_the_edge_of_the_terminal_and_only_there() -> None:
    with Terminal("tools", *DEMO, env={"COLUMNS": "40", **PLAIN}) as terminal:
        assert terminal.end() == 0
    lines = terminal.seen.splitlines()
    assert max(map(len, lines)) == 40
    assert "  count(n, delay?)     Count to n and..." in lines
    assert max(map(len, mcpsync("tools", *DEMO, env={"COLUMNS": "40"}).stdout.splitlines())) > 80


@needs_rich
def test_rich_draws_on_a_terminal_unless_it_shall_not() -> None:
    with Terminal("tools", *DEMO) as terminal:
        assert terminal.end() == 0
    assert "\x1b[1m" in terminal.seen
    assert "count(n, delay?)" in terminal.seen
    for env in (PLAIN, {"TERM": "dumb"}):
        with Terminal("tools", *DEMO, env=env) as terminal:
            assert terminal.end() == 0
        assert "\x1b" not in terminal.seen


@needs_rich
def test_rich_draws_progress() -> None:
    with Terminal("call", "count", "n=3", "delay=0.1", *DEMO) as terminal:
        assert terminal.end() == 0
    assert "2/3 counted to 2 of 3" in re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", terminal.seen)
    assert terminal.seen.endswith("counted to 3\n")


def test_rich_is_imported_only_for_a_terminal() -> None:
    script = "import sys; from mcpsync.cli import main; main(sys.argv[1:]); print('rich' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, "tools", *DEMO],
        env=environment(), check=True, timeout=30, stdout=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout.endswith("False\n")


# --- hostile servers

EVIL = "\x1b]0;owned\x07\x1b[2J\r\x9bA\u202e\u2028[bold]"


def evil_tools(server: Any, request: Any, cursor: Any = None) -> Any:
    evil = "\x1b]0;owned\x07\x1b[2J\r\x9bA\u202e\u2028[bold]"
    schema = {"type": "object", "properties": {evil: {"title": evil}}, "required": [evil]}
    tools = [{"name": name, "description": evil, "inputSchema": schema} for name in ("echo" + evil, "nice\nname")]
    tools += [{"name": name, "inputSchema": {"type": "object"}} for name in ("evil_answer", "evil_error", "ask")]
    return {"tools": tools}


def evil_answer(server: Any, request: Any) -> Any:
    evil = "\x1b]0;owned\x07\x1b[2J\r\x9bA\u202e\u2028[bold]"
    server.progress(request, 1, 2)
    token = request["params"].get("_meta", {}).get("progressToken")
    server.notify("notifications/progress", {"progressToken": token, "progress": 1.5, "message": evil})
    server.notify("notifications/message", {"level": "error", "logger": evil, "data": evil})
    os.write(2, evil.encode() + b"\n")
    return evil + "\nsecond line"


def evil_error(server: Any, request: Any) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\r\x9bA\u202e\u2028[bold]"
    server.error(request, -32603, evil, evil)


def evil_resource(server: Any, request: Any, uri: str) -> Any:
    evil = "\x1b]0;owned\x07\x1b[2J\r\x9bA\u202e\u2028[bold]"
    return {"contents": [{"uri": uri, "text": evil}, {"uri": uri, "mimeType": evil, "blob": "AA=="}]}


def hostile(tmp_path: Path) -> Peer:
    handlers = {"tools/list": evil_tools, "resources/read": evil_resource}
    return peer(tmp_path, evil_answer, evil_error, handlers=handlers, era="legacy")


QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": EVIL,
        "requestedSchema": {
            "type": "object",
            "properties": {EVIL: {"type": "string", "title": EVIL, "description": EVIL, "enum": [EVIL]}},
        },
    },
}
HOSTILE_COMMANDS: List[List[str]] = [
    ["tools"],
    ["call", "evil_answer"],
    ["call", "evil_answer", "--verbose"],
    ["call", "evil_error"],
    ["call", "echo" + EVIL],
    ["read", "x:" + EVIL],
]


@pytest.mark.parametrize("words", HOSTILE_COMMANDS)
@pytest.mark.parametrize("env", [PLAIN, pytest.param({}, marks=needs_rich)])
def test_a_hostile_server_cannot_write_on_the_terminal(tmp_path: Path, words: List[str], env: Dict[str, str]) -> None:
    with Terminal(*words, "--", *hostile(tmp_path).command, env=env) as terminal:
        terminal.end()
    ours = re.sub("\x1b\\[[0-9;?]*[mhlKAG]|\x1b\\[2K|\x1b\\[1A", "", terminal.seen) if not env else terminal.seen
    assert "\\x1b]0;owned\\x07" in re.sub(r"\s+", "", ours)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u202e]", ours), repr(ours)
    assert "owned\x07" not in terminal.seen
    assert "\rA" not in terminal.seen


@pytest.mark.parametrize("words", HOSTILE_COMMANDS)
def test_nor_through_a_pipe_or_json(tmp_path: Path, words: List[str]) -> None:
    server = hostile(tmp_path)
    for more in ([], ["--json"]):
        done = mcpsync(*words, *more, "--", *server.command)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", done.stdout + done.stderr)
        if more:
            json.loads(done.stdout)
        else:
            assert "owned" in done.stdout + done.stderr


def test_json_keeps_hostile_text_as_it_is(tmp_path: Path) -> None:
    done = mcpsync("tools", "--json", "--", *hostile(tmp_path).command)
    assert json.loads(done.stdout)["servers"][0]["tools"][0]["name"] == "echo" + EVIL


def test_a_hostile_question(tmp_path: Path) -> None:
    command = hostile(tmp_path).command
    with Terminal("call", "ask", "--args", json.dumps(QUESTION), "--", *command, env=PLAIN) as terminal:
        terminal.read_until("; optional): ")
        terminal.type("x\n")
        terminal.read_until("must be one of")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u202e]", terminal.seen), repr(terminal.seen)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_encoding_that_lacks_letters_is_no_error(encoding: str) -> None:
    done = mcpsync("call", "echo", "text=\u4e2d\u6587", *DEMO, env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stdout) == (0, "\\u4e2d\\u6587\n")


# --- secrets


def test_values_of_env_are_never_shown(tmp_path: Path) -> None:
    server = peer(tmp_path, era="legacy")
    for words, code in (
        (["call", "environment"], 0),  # the variables arrive, and the server may do with them as it likes
        (["call", "die", "--verbose"], 3),
        (["tools", "--verbose", "--json"], 0),
        (["tools", "--env", "hunter2-value"], 2),
    ):
        done = mcpsync(*words, "--env", "API_KEY=hunter2-value", "--env", "HOMER", "--", *server.command,
                       env={"HOMER": "odyssey-value"})  # fmt: skip
        assert done.returncode == code, done.stderr
        if code or words[0] != "call":
            assert "hunter2-value" not in done.stdout + done.stderr
            assert "odyssey-value" not in done.stdout + done.stderr
        else:
            env = json.loads(done.stdout)["env"]
            assert (env["API_KEY"], env["HOMER"]) == ("hunter2-value", "odyssey-value")
