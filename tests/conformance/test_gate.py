"""The gate itself, with a stand-in for the suite: nothing that goes wrong passes for right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, List, Optional, Set

import pytest

from tests.conformance import gate

LIMIT = 20
FAKE = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("-o") + 1], "run")
folder.mkdir()
checks = [dict(zip(("id", "status"), each.split("="))) for each in CHECKS or ()]
if CHECKS is not None:
    (folder / "checks.json").write_text(json.dumps(checks))
print(SAYS)
"""


def outcome(tmp_path: Path, wanted: List[str], checks: Optional[List[str]], says: str = "") -> gate.Run:
    script = tmp_path / "fake.py"
    script.write_text("CHECKS = %r\nSAYS = %r\n%s" % (checks, says, FAKE))
    return gate.run([sys.executable, str(script)], "client", "2026-07-28", "it", wanted, LIMIT)


@pytest.mark.parametrize(
    ("wanted", "checks", "says", "problems"),
    [
        (["a"], ["a=SUCCESS"], "", set()),
        (["a"], ["a=SUCCESS", "b=SKIPPED", "c=INFO", "d=SUCCESS"], "", set()),
        (["a", "a"], ["a=SUCCESS", "a=SUCCESS"], "", set()),
        (["a", "a"], ["a=SUCCESS", "a=SKIPPED"], "", {"missing:a"}),
        (["a"], [], "", {"missing:a"}),
        (["a"], ["a=SUCCESS", "a=FAILURE"], "", {"a"}),
        (["a"], ["a=SUCCESS", "b=WARNING"], "", {"b"}),
        (["a"], ["a=WARNING"], "", {"a", "missing:a"}),
        (["a"], ["a=SUCCESS"], "\x1b[31mCLIENT EXITED \x1b[0mWITH ERROR (code 1)", {"client-exit"}),
        (["a"], ["a=SUCCESS"], "Client timed out after 30 s", {"client-timeout"}),
        (["a"], None, "", None),
    ],
)
def test_a_scenario(
    tmp_path: Path, wanted: List[str], checks: Optional[List[str]], says: str, problems: Optional[Set[str]]
) -> None:
    assert outcome(tmp_path, wanted, checks, says).problems == problems


def run_of(problems: Any) -> gate.Run:
    return gate.Run("2026-07-28 it", problems, 1, "the output")


@pytest.mark.parametrize(
    ("problems", "known", "code", "says"),
    [
        (set(), [], 0, "clean 2026-07-28 it: 1 passed"),
        ({"a"}, [], 1, "other 2026-07-28 it: 1 passed a\nthe output"),
        ({"a"}, ["a"], 0, "known 2026-07-28 it: 1 passed"),
        ({"a", "b"}, ["a"], 1, "other 2026-07-28 it: 1 passed b\nthe output"),
        (set(), ["a"], 1, "other 2026-07-28 it: 1 passed GONE:a"),
        (None, ["a"], 2, "BROKEN 2026-07-28 it\nthe output"),
    ],
)
def test_the_exit_code(problems: Any, known: List[str], code: int, says: str, capsys: pytest.CaptureFixture) -> None:
    assert gate.judge([run_of(problems)], {"2026-07-28 it": known}) == code
    assert says in capsys.readouterr().out


def test_one_bad_scenario_is_enough(capsys: pytest.CaptureFixture) -> None:
    assert gate.judge([run_of({"a"}), run_of(set())], {}) == 1
    assert gate.judge([run_of(None), run_of({"a"}), run_of(set())], {}) == 2
    assert "1 clean, 0 known, 1 other, 1 broken" in capsys.readouterr().out
