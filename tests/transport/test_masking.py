"""Secrets in what is shown."""

from __future__ import annotations

import pytest

from mcpsync.transport.masking import Mask, looks_secret


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "apiKey",
        "api-key",
        "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "authToken",
        "X-Api-Key",
        "Authorization",
        "PGPASSWORD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GH_PAT",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "KEYBOARD",
        "MONKEY",
        "AUTHOR",
        "TOKENIZERS_PARALLELISM",
        "SSH_AUTH_SOCK",
        "HOME",
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not looks_secret(name)


def test_values_of_variables_are_hidden() -> None:
    mask = Mask({"A_TOKEN": "abcdef", "LONG_TOKEN": "abcdef-more", "PLAIN": "visible", "P": "http://me:hunter2@host/"})
    assert mask.text("abcdef abcdef-more visible hunter2") == "*** *** visible ***"
    assert "abcdef" not in repr(mask)


def test_values_that_are_too_common_stay() -> None:
    mask = Mask({"A_TOKEN": "", "B_TOKEN": "abc", "C_KEY": "true", "MAX_TOKENS": "4096"})
    assert mask.text("abc true 4096") == "abc true 4096"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-key", "hunter2"],
        ["--api-key=hunter2"],
        ["--header", "Authorization: Bearer hunter2"],
        ["-e", "API_KEY=hunter2"],
        ["https://x.example/mcp?api_key=hunter2&b=1"],
        ["postgres://me:hunter2@host/db"],
        ["--auth-token", "Bearer hunter2"],
    ],
)
def test_arguments_are_hidden(arguments: list[str]) -> None:
    shown = Mask({}, arguments).command(["server", *arguments])
    assert "hunter2" not in shown
    assert "***" in shown


def test_other_arguments_stay() -> None:
    command = ["server", "--api-key", "--verbose", "--port=8080", "file.txt"]
    assert Mask({}, command).command(command) == " ".join(command)
