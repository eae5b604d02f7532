"""Exported tools and recorded calls, judged by the official packages of the model APIs and two agent frameworks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from mcpsync.export import FORMATS, FRAMEWORKS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("form", [*FORMATS, *FRAMEWORKS])
def test_the_official_package_takes_it_and_a_recorded_call_goes_through(
    model_apis_command: List[str], form: str, tmp_path: Path
) -> None:
    server = [sys.executable, "-m", "mcpsync.demo"]
    done = subprocess.run(
        [*model_apis_command, form, *server],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MCPSYNC_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == "from a model"
