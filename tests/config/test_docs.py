"""The examples in the documentation load, without a remark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcpsync.config import load

PAGE = Path(__file__).parents[2] / "docs" / "config.md"
EXAMPLES = re.findall(r"```(json|yaml)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_there_is_one_of_each_format() -> None:
    assert [language for language, _ in EXAMPLES] == ["json", "yaml"]


@pytest.mark.parametrize(("language", "text"), EXAMPLES)
def test_example(tmp_path: Path, language: str, text: str) -> None:
    path = tmp_path / ("example." + language)
    path.write_text(text, encoding="utf-8")
    config = load(path, environ={})
    assert config.diagnostics == ()
    assert all(server.enabled for server in config.servers.values())
