"""The command is quick to answer."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from typing import List

import pytest


def milliseconds(command: List[str]) -> float:
    """Processor time, which does not depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


@pytest.mark.alone
@pytest.mark.timed
def test_help_costs_less_than_100_ms_over_bare_python() -> None:
    bare, helped = [sys.executable, "-c", "pass"], [sys.executable, "-m", "mcpsync", "--help"]
    milliseconds(helped)  # compiles what is not compiled yet
    costs = [milliseconds(helped) - milliseconds(bare) for _ in range(7)]
    assert statistics.median(costs) < 100


def test_help_imports_nothing_that_it_does_not_need() -> None:
    unneeded = ("mcpsync.client", "mcpsync.config", "yaml", "subprocess", "rich", "asyncio")
    script = (
        "import sys; before = set(sys.modules); from mcpsync.cli import main; main(['--help']); "
        "print([name for name in %r if name in sys.modules and name not in before])" % (unneeded,)
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, encoding="utf-8")
    assert done.stdout.endswith("\n[]\n")
