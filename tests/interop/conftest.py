"""The peers as fixtures. A peer that cannot be had is a named skip, or a failure with MCPSYNC_REQUIRE_INTEROP=1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Dict, Iterator, List, TypeVar

import pytest

from tests.interop import peers
from tests.interop.chromium import Chromium
from tests.interop.signing import User

T = TypeVar("T")


def _had(build: Callable[[], T]) -> T:
    try:
        return build()
    except peers.PeerUnavailable as missing:
        if os.environ.get("MCPSYNC_REQUIRE_INTEROP") == "1":
            pytest.fail("interop peer missing: %s" % missing, pytrace=False)
        pytest.skip("interop peer missing: %s" % missing)


@pytest.fixture(scope="session")
def everything_command() -> List[str]:
    """How to start ``@modelcontextprotocol/server-everything``."""
    return _had(peers.everything_command)


@pytest.fixture(scope="session")
def filesystem_command(everything_command: List[str]) -> Callable[[Path], List[str]]:
    """How to start ``@modelcontextprotocol/server-filesystem`` on a folder."""
    del everything_command  # the same npm folder: missing together
    return peers.filesystem_command


@pytest.fixture(scope="session")
def mcp2_command() -> List[str]:
    """How to start ``servers/mcp2_server.py`` (both eras)."""
    return _had(peers.mcp2_command)


@pytest.fixture(scope="session")
def mcp1_command() -> List[str]:
    """How to start ``servers/mcp1_server.py`` (the legacy era alone)."""
    return _had(peers.mcp1_command)


@pytest.fixture(scope="session")
def fastmcp4_command() -> List[str]:
    """How to start ``servers/fastmcp4_server.py`` (both eras)."""
    return _had(peers.fastmcp4_command)


@pytest.fixture(scope="session")
def scanned_commands() -> Dict[str, List[str]]:
    """How to start the servers that are there to be listed, by package."""
    return _had(peers.scanned_commands)


@pytest.fixture(scope="session")
def mcp2_auth_command() -> List[str]:
    """How to start ``servers/mcp2_auth_server.py``."""
    return _had(peers.mcp2_auth_command)


@pytest.fixture(scope="session")
def oidc_command() -> List[str]:
    """How to start ``servers/oidc_server.cjs``, with NODE_PATH on its packages."""
    return _had(peers.oidc_command)


@pytest.fixture(scope="session")
def model_apis_command() -> List[str]:
    """How to have exported tools judged by ``servers/model_apis.py``."""
    return _had(peers.model_apis_command)


@pytest.fixture(scope="session")
def running_chromium() -> Iterator[Chromium]:
    """A browser for all tests of this process."""
    with Chromium(*_had(peers.chromium_paths)) as chromium:
        yield chromium


@pytest.fixture
def chromium(running_chromium: Chromium) -> Chromium:
    """A browser in which nobody is signed in anywhere."""
    running_chromium.forget()
    return running_chromium


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """Somebody who is signed in nowhere yet; this process is theirs."""
    monkeypatch.setenv("MCPSYNC_HOME", str(tmp_path))
    return User(tmp_path)
