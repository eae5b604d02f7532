"""What ``import mcpsync`` costs, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import pytest

MILLISECONDS = 30
RUNS = 9
OPTIONAL = ("requests", "urllib3", "yaml", "cryptography", "sseclient", "rich", "jsonschema", "orjson", "asyncio")


def milliseconds(statement: str) -> float:
    """The wall time of a fresh interpreter that runs the statement."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return (time.perf_counter() - began) * 1000


@pytest.mark.alone
@pytest.mark.timed
def test_import_is_quick() -> None:
    milliseconds("import mcpsync")  # writes the byte code and warms the disk's cache
    bare, ours = [], []
    for _ in range(RUNS):
        bare.append(milliseconds("pass"))
        ours.append(milliseconds("import mcpsync"))
    assert statistics.median(ours) - statistics.median(bare) <= MILLISECONDS


def test_import_alone_brings_in_nothing_optional() -> None:
    code = "import sys, mcpsync; print(*sorted(set(sys.argv[1:]) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code, *OPTIONAL], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == []
