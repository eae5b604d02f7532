"""The table of what the two reference systems do leads to modules and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/reference-systems.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| said there", "| field |"))
]


def named(cell: str) -> List[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_is_read() -> None:
    assert len(ROWS) > 130
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_each_row_leads_to_what_is_there(row: List[str]) -> None:
    _, where, differs, tests = row
    if where == "—":
        assert differs
        if not tests:
            return
    else:
        assert named(where)
        for module in named(where):
            assert (ROOT / "mcpsync" / module).is_file(), module
    assert named(tests)
    for test in named(tests):
        path, _, function = test.partition("::")
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert re.search(r"^ *def %s\(" % (re.escape(function) if function else r"test_\w+"), text, re.MULTILINE), test
