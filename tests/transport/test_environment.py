"""Which variables a server gets."""

from __future__ import annotations

import pytest

from mcpsync.transport.environment import server_environment, withheld

PARENT = {
    "PATH": "/bin",
    "HOME": "/home/u",
    "LANG": "C",
    "LC_ALL": "C",
    "XDG_RUNTIME_DIR": "/run",
    "https_proxy": "http://u:pw@proxy",
    "HTTPS_PROXY": "http://u:pw@proxy",
    "npm_config_registry": "https://npm",
    "NPM_CONFIG_REGISTRY": "https://npm",
    "PIP_INDEX_URL": "https://u:pw@pip",
    "NODE_EXTRA_CA_CERTS": "/ca",
    "PYTHONPATH": "/x",
    "PYTHONHOME": "/x",
    "LD_LIBRARY_PATH": "/x",
    "DYLD_INSERT_LIBRARIES": "/x",
    "VIRTUAL_ENV": "/x",
    "GITHUB_TOKEN": "secret",
    "EDITOR_STATE": "x",
    "XDG_FUNC": "() { evil; }",
}


def test_safe_lets_through_what_programs_need() -> None:
    assert set(server_environment("safe", {}, PARENT, windows=False)) == {
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "XDG_RUNTIME_DIR",
        "https_proxy",
        "HTTPS_PROXY",
        "npm_config_registry",
        "NPM_CONFIG_REGISTRY",
        "PIP_INDEX_URL",
        "NODE_EXTRA_CA_CERTS",
    }


def test_the_users_variables_are_laid_on_top() -> None:
    assert server_environment("safe", {"PATH": "/own", "GITHUB_TOKEN": "t"}, PARENT, windows=False)["PATH"] == "/own"
    assert server_environment("none", {"A": "b"}, PARENT, windows=False) == {"A": "b"}
    assert server_environment("inherit", {"A": "b"}, PARENT, windows=False) == {**PARENT, "A": "b"}


def test_windows_knows_no_case_and_needs_its_own() -> None:
    parent = {"Path": "C:\\x", "SystemRoot": "C:\\Windows", "AppData": "x", "Api_Key": "s"}
    assert server_environment("safe", {"PATH": "D:\\"}, parent, windows=True) == {
        "PATH": "D:\\",
        "SystemRoot": "C:\\Windows",
        "AppData": "x",
    }
    assert server_environment("none", {}, parent, windows=True) == {"SystemRoot": "C:\\Windows"}
    assert withheld(parent, "safe", windows=True) == ["Api_Key"]


def test_what_is_likely_missed_is_named() -> None:
    assert withheld(PARENT, "safe", windows=False) == [
        "DYLD_INSERT_LIBRARIES",
        "GITHUB_TOKEN",
        "LD_LIBRARY_PATH",
        "PYTHONHOME",
        "PYTHONPATH",
        "VIRTUAL_ENV",
    ]
    assert withheld(PARENT, "inherit", windows=False) == []
    assert "GITHUB_TOKEN" in withheld(PARENT, "none", windows=False)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="safe, inherit, none"):
        server_environment("all")
