"""Listings that the library has no method for: paged all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mcpsync
from mcpsync import InvalidMessage, MethodNotFound, PageLimit
from mcpsync.types import Resource
from tests.peers.scripted import peer

pytestmark = pytest.mark.own_methods("resources/directory/read")

METHOD = "resources/directory/read"


def children(server: Any, request: Any, uri: str, cursor: str = "0") -> Any:
    """Three pages of one child each, the second a broken one."""
    page = int(cursor)
    child = {"uri": "%s/%d" % (uri, page), **({} if page == 1 else {"name": str(page)})}
    return {"resources": [child], **({"nextCursor": str(page + 1)} if page < 2 else {})}


def test_each_page_has_the_parameters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = peer(tmp_path, handlers={METHOD: children})
    with mcpsync.connect(server.command, name="files") as client:
        found = client.iterate(METHOD, "resources", Resource.from_wire, {"uri": "file:///a"})
        assert server.received(METHOD) == []
        assert [child.uri for child in found] == ["file:///a/0", "file:///a/2"]
    asked = [{**each["params"], "_meta": None} for each in server.received(METHOD)]
    assert asked == [{"uri": "file:///a", "_meta": None, **cursor} for cursor in ({}, {"cursor": "1"}, {"cursor": "2"})]
    assert "server 'files': an entry of resources is left out: Resource.name: required, but missing" in caplog.text


def test_pages_are_bounded(tmp_path: Path) -> None:
    server = peer(tmp_path, handlers={METHOD: children})
    with mcpsync.connect(server.command, page_limit=1) as client, pytest.raises(PageLimit) as caught:
        list(client.iterate(METHOD, "resources", Resource.from_wire, {"uri": "file:///a"}))
    assert [child.uri for child in caught.value.partial] == ["file:///a/0"]
    assert caught.value.method == METHOD


def test_what_the_server_says_is_raised(tmp_path: Path) -> None:
    server = peer(tmp_path)
    with mcpsync.connect(server.command) as client:
        with pytest.raises(MethodNotFound):
            list(client.iterate(METHOD, "resources", Resource.from_wire, {"uri": "file:///a"}))
        with pytest.raises(InvalidMessage, match="the result has no list 'skills'"):
            list(client.iterate("tools/list", "skills", Resource.from_wire))
