"""The private authority of these tests, and a state folder for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.network import authority, no_environment

__all__ = ["authority", "no_environment", "state_folder"]


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("MCPSYNC_HOME", str(folder))
    return folder
