"""The table of faults in the documentation leads to tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINES = re.findall(
    r"^\| ([A-H]\d+) \|.*\| ((?:`tests/\S+\.py`(?:, )?)+) \|$", (ROOT / "docs/reliability.md").read_text(), re.MULTILINE
)
ROWS = [(row, path) for row, paths in LINES for path in re.findall(r"`([^`]+)`", paths)]


def test_the_table_is_read() -> None:
    assert len(LINES) > 50
    assert len(dict(LINES)) == len(LINES)


@pytest.mark.parametrize(("row", "path"), ROWS)
def test_each_row_is_shown_by_a_test(row: str, path: str) -> None:
    text = (ROOT / path).read_text()
    assert re.search(r"def test_%s_|\b%s\b" % (row.lower(), row), text), "%s does not name %s" % (path, row)
