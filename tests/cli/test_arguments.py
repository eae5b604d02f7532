"""Command lines, right and wrong."""

from __future__ import annotations

import os
from typing import Any, List

import pytest

from mcpsync.cli import main
from mcpsync.cli.arguments import COMMANDS, HelpWanted, parse
from mcpsync.cli.exits import MEANINGS
from mcpsync.errors import ConfigError

AFTER = ["--", "server", "--json", "--", "x"]


def test_options_and_words_may_be_mixed_and_what_follows_is_the_servers() -> None:
    found = parse(["call", "--json", "add", "a=1", "--timeout", "2.5", "b=-2", "--env=A=b=c", *AFTER])
    assert found.words == ["add", "a=1", "b=-2"]
    assert found.server_command == ["server", "--json", "--", "x"]
    assert (found.json, found.timeout, found.env, found.protocol) == (True, 2.5, {"A": "b=c"}, "auto")


def test_env_without_a_value_hands_on_the_one_of_this_environment() -> None:
    assert parse(["ping", "--env", "A", "--env", "B=2", *AFTER], {"A": "1", "B": "x"}).env == {"A": "1", "B": "2"}


def test_header_values_come_from_variables_so_that_no_list_of_processes_has_them() -> None:
    line = ["tools", "--url", "http://a", "--header", "Authorization: Bearer ${T}", "--header", "X-A:b"]
    found = parse(line, {"T": "geheim"})
    assert found.headers == {"Authorization": "Bearer geheim", "X-A": "b"}
    assert (found.url, found.transport) == ("http://a", "auto")
    assert "geheim" not in repr(found)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "say what to do: one of demo, tools, call, "),
        (["tolls", *AFTER], "there is no command 'tolls' (did you mean 'tools'?)"),
        (["--json", "tools"], "the command comes first, its options after it: mcpsync COMMAND --json"),
        (["tools"], "tools: which server? Give --config FILE, --url URL, or -- and the command that starts it"),
        (["tools", "--"], "tools: which server? Give --config FILE, --url URL, or -- and the command that starts it"),
        (["tools", "--config", "f", "--", "x"], "tools: give --config or a command behind --, not both"),
        (["tools", "--url", "http://a", *AFTER], "tools: give --url or a command behind --, not both"),
        (["tools", "--url", "http://a", "--config", "f"], "tools: give --config or --url, not both"),
        (["tools", "--url", "http://a", "--server", "x"], "tools: --server picks a server of a config file"),
        (["tools", "--url", "http://a", "--env", "A=geheim"], "tools: --env is for a server that is started"),
        (["tools", "--header", "A: geheim", *AFTER], "tools: --header goes with --url"),
        (["tools", "--transport", "sse", *AFTER], "tools: --transport goes with --url"),
        (["tools", "--url", "http://a", "--transport", "ws"], "tools: argument --transport: invalid choice: 'ws'"),
        (["tools", "--url", "http://a", "--header", "geheim"], "--header takes 'NAME: VALUE'"),
        (["tools", "--url", "http://a", "--header", "A: ${T}"], "--header A: the variable T is not set"),
        (
            ["tools", "http://a/?key=geheim"],
            "tools takes no further words and not 'http://a/': a server's URL goes behind --url",
        ),
        (["tools", "--server", "x", "--", "x"], "tools: --server picks a server of a config file"),
        (["tools", "--jsno", *AFTER], "tools: there is no option --jsno (did you mean '--json'?)"),
        (["tools", "--js", *AFTER], "tools: there is no option --js"),
        (["tools", "--token=geheim", *AFTER], "tools: there is no option --token"),
        (["tools", "--args", "{}", *AFTER], "tools: there is no option --args"),
        (["tools", "npx", *AFTER], "tools takes no further words and not 'npx': the command that starts"),
        (["read", "a", "b", *AFTER], "read takes URI and not 'b'"),
        (["read", *AFTER], "read: URI is missing: mcpsync read URI"),
        (["call", *AFTER], "call: TOOL is missing: mcpsync call TOOL [KEY=VALUE ...]"),
        (["call", "a\udc80=1", *AFTER], "call: the argument 'a\\udc80=1' is no valid text"),
        (["ping", "--timeout", "0", *AFTER], "ping: argument --timeout: must be a number of seconds above 0, not '0'"),
        (["ping", "--timeout", "-5", *AFTER], "ping: argument --timeout: must be a number of seconds above 0"),
        (["ping", "--timeout", "inf", *AFTER], "ping: argument --timeout: must be a number of seconds above 0"),
        (["ping", "--timeout"], "ping: argument --timeout: expected one argument"),
        (["ping", "--env", "geheim", *AFTER], "--env takes NAME=VALUE; a bare NAME must be a variable of this"),
        (["ping", "--env", "=geheim", *AFTER], "--env takes NAME=VALUE, or NAME"),
        (["demo", "--", "x"], "demo brings its own server: take away what stands behind --"),
        (["demo", "--config", "x"], "demo: there is no option --config"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(line: List[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(line, {})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("line", [["--help"], ["-h"], *([name, "--help"] for name in COMMANDS)])
def test_help_names_commands_or_options_and_every_exit_code(line: List[str]) -> None:
    with pytest.raises(HelpWanted) as caught:
        parse(line)
    text = str(caught.value)
    for code, meaning in MEANINGS.items():
        assert "%-3d %s" % (code, meaning) in text
    for word in COMMANDS if len(line) == 1 else ["--timeout", "--protocol", "--verbose"]:
        assert word in text
    assert max(map(len, text.splitlines())) <= 120


def test_main_gives_the_code_and_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tolls"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "mcpsync: there is no command 'tolls' (did you mean 'tools'?)\n")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("mcpsync ")


def test_main_takes_the_arguments_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mcpsync", "ping", "--help"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("usage: mcpsync ping")


def test_the_documentation_has_every_command_option_and_exit_code() -> None:
    docs = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "cli.md")
    with open(docs, encoding="utf-8") as file:
        text = file.read()
    for name, command in COMMANDS.items():
        assert "| `%s` |" % ("%s %s" % (name, command.words)).rstrip() in text
    for code, meaning in MEANINGS.items():
        assert "| %d | %s |" % (code, meaning) in text
    with pytest.raises(HelpWanted) as caught:
        parse(["call", "--help"])
    for option in (word for word in str(caught.value).split() if word.startswith("--") and len(word) > 2):
        assert option.partition("[")[0].rstrip(",") in text or option == "--help"


def test_main_on_a_thread_works_too(capsys: pytest.CaptureFixture[str]) -> None:
    import threading

    codes: List[Any] = []
    thread = threading.Thread(target=lambda: codes.append(main(["ping", "--", "no-such-program"])))
    thread.start()
    thread.join()
    assert codes == [3]
    assert "command 'no-such-program' not found" in capsys.readouterr().err
