"""``mcpsync demo``: right with the bundled server, and with one that is not right it says so."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import List, Optional

import pytest

from mcpsync.cli.arguments import Invocation
from mcpsync.cli.demo import demo_command, show
from mcpsync.cli.output import Output
from mcpsync.errors import ConfigError
from tests.cli.command import Terminal, mcpsync

STEPS = ["connect", "tools", "call", "progress", "elicitation", "cancel", "resource", "prompt", "timings", "close"]


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
def test_every_step_is_shown(protocol: str, tmp_path: Path) -> None:
    began = time.monotonic()
    done = mcpsync("demo", "--protocol", protocol)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert time.monotonic() - began < 10
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("  ok  ")]
    assert [line[1] for line in lines] == STEPS
    assert re.search(r"its log says 'cancelled request \d+'", done.stdout)
    assert re.search(r"median \d+ µs per call", done.stdout)


def test_the_files_of_the_user_are_not_taken_for_modules(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    script = tmp_path / "bin" / "mcpsync"
    script.parent.mkdir()
    script.write_text("import sys; from mcpsync.cli import main; sys.exit(main())", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), "demo"], cwd=tmp_path, check=False, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout


def test_on_a_terminal_the_person_is_asked_and_the_bar_is_drawn() -> None:
    with Terminal("demo", env={"NO_COLOR": "1"}) as terminal:
        terminal.read_until("] 20/20 counted to 20 of 20")
        drawn = re.findall(r"\] (\d+)/20 counted to (\d+) of 20", terminal.seen)
        terminal.read_until("Your name [Ada]: ")
        terminal.type("\n")
        terminal.read_until("[yes]: ")
        terminal.type("n\n")
        assert terminal.end() == 0
    assert len(drawn) > 3  # on a slow machine not each of them: the latest is drawn
    assert all(done == counted for done, counted in drawn)
    assert "answered Ada: Hi, Ada!" in terminal.seen


def test_a_person_may_decline() -> None:
    with Terminal("demo", env={"NO_COLOR": "1"}) as terminal:
        terminal.read_until("Your name [Ada]: ")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "which was declined: No name, no greeting." in terminal.seen


@pytest.mark.parametrize("executable", [None, "", "/opt/app/bin/frozen-app", "C:\\blender\\blender.exe"])
def test_without_a_python_it_says_so(executable: Optional[str]) -> None:
    with pytest.raises(ConfigError, match="run 'mcpsync demo' from a Python of your own"):
        demo_command(executable)


@pytest.mark.parametrize("executable", [sys.executable, "/usr/bin/python3.13t", "python.exe", "/opt/pypy3", "mayapy"])
def test_with_one_it_runs_the_bundled_server(executable: str) -> None:
    assert demo_command(executable) == [executable, "-m", "mcpsync.demo"]


def wrong_server(tmp_path: Path, change: str) -> List[str]:
    """The demo server with something changed."""
    source = """
        from mcpsync.demo import __main__, call, offers, server
        %s
        __main__.main()
    """
    file = tmp_path / "wrong.py"
    file.write_text(textwrap.dedent(source) % change, encoding="utf-8")
    return [sys.executable, str(file)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("server.SERVER_INFO['name'] = 'other'", "another server answered"),
        ("del offers.TOOLS['slow']", "tools are missing"),
        ("offers.TOOLS['add'] = offers.TOOLS['add']._replace(work=lambda *_, **__: {'sum': 41})", "came out as"),
        ("call.Call.progress = lambda *_: None", "progress came as []"),
        (
            "offers.TOOLS['greet'] = offers.TOOLS['greet']._replace(work=lambda *_: 'Hi!')",
            "the server asked 0 questions",
        ),
        ("offers.Offers.record = lambda *_: None", "the server did not confirm that it stopped"),
        ("server.Server._report_stop = lambda self, call: self._offers.record('what?')", "says 'what?' and not"),
        (
            "offers.TOOLS['slow'] = offers.TOOLS['slow']._replace(work=lambda *_, **__: 'done')",
            "a call of 60 seconds was over at once",
        ),
        ("offers.MOODS[0:] = []; offers.Offers.get_prompt = lambda *_: {'messages': []}", "the prompt came out as []"),
        ("offers.TOOLS['echo'] = offers.TOOLS['echo']._replace(work=lambda *_, **__: 'no')", "echo gave 'no' for '0'"),
    ],
)
def test_a_step_that_goes_wrong_fails_the_demo(
    change: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(wrong_server(tmp_path, change), Invocation("demo", []), Output()) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert message in out
    assert "Everything was checked" not in out


def test_a_server_that_does_not_start_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(["no-such-program"], Invocation("demo", []), Output()) == 3
    assert "FAILED" in capsys.readouterr().out
