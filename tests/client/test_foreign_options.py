"""Options that mean nothing for a target are refused, not ignored."""

from __future__ import annotations

from typing import Any

import pytest

import mcpsync
from mcpsync.config import load
from mcpsync.errors import ConfigError
from mcpsync.host import Host

COMMAND = ["server"]
URL = "http://127.0.0.1:9/mcp"


@pytest.mark.parametrize(
    "target, options",
    [
        (COMMAND, {"headers": {"A": "b"}}),
        (COMMAND, {"verify": False}),
        (COMMAND, {"proxies": {}}),
        (COMMAND, {"max_connections": 2}),
        (URL, {"env": {"A": "b"}}),
        (URL, {"env_mode": "none"}),
        (URL, {"cwd": "."}),
        (URL, {"path_prepend": ["bin"]}),
        ("unix:///s.sock", {"stderr": print}),
        ("unix:///s.sock", {"cert": "c.pem"}),
        (lambda: None, {"cwd": "."}),
    ],
)
def test_an_option_of_another_kind_of_target(target: Any, options: Any) -> None:
    with pytest.raises(ConfigError, match="%s goes with .*, and this is " % next(iter(options))):
        mcpsync.Client(target, **options)


def test_what_a_host_gives_to_all_reaches_those_that_it_means_something_for() -> None:
    config = load({"mcpServers": {"a": {"command": "x"}, "b": {"url": URL}}})
    host = Host(config, verify=False, env_mode="none", stderr=print, schema_cache=False)
    assert set(host.config.servers) == {"a", "b"}
    host.close()


def test_a_host_that_was_refused_can_be_shown() -> None:
    host = Host.__new__(Host)
    with pytest.raises(ConfigError):
        host.__init__({})  # type: ignore[misc, arg-type]
    assert "refused" in repr(host)
    client = mcpsync.Client.__new__(mcpsync.Client)
    with pytest.raises(ConfigError):
        client.__init__(COMMAND, headers={"A": "b"})  # type: ignore[misc]
    assert "refused" in repr(client)
