"""FAULTS.md H2: listings of several pages, and of pages that do not end."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Dict

import pytest

import mcpsync
from mcpsync import InvalidMessage, PageLimit, RequestTimeout, Timeouts
from tests.faults.watch import took
from tests.peers.scripted import Peer, peer

ERAS = ["legacy", "modern"]
LISTINGS = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]


def _paged(tmp_path: Path, handler: Any, era: str = "both") -> Peer:
    return peer(tmp_path, era=era, handlers=dict.fromkeys(LISTINGS, handler))


@pytest.mark.parametrize("era", ERAS)
def test_h2_three_pages_of_everything(tmp_path: Path, era: str) -> None:
    server = _paged(tmp_path, "three_pages", era)
    six = ["item-%d" % number for number in range(6)]
    with mcpsync.connect(server.command) as client:
        assert [tool.name for tool in client.list_tools()] == six
        assert [resource.name for resource in client.list_resources()] == six
        assert [template.name for template in client.list_resource_templates()] == six
        assert [prompt.name for prompt in client.list_prompts()] == six
    cursors = [each["params"].get("cursor") for each in server.received("tools/list")]
    assert cursors == [None, "1", "2"]


def test_h2_pages_are_fetched_when_they_are_needed(tmp_path: Path) -> None:
    server = _paged(tmp_path, "three_pages")
    with mcpsync.connect(server.command) as client:
        assert [tool.name for tool in islice(client.iter_tools(), 2)] == ["item-0", "item-1"]
        client.call_tool("echo")
        assert len(server.received("tools/list")) == 1


def test_h2_a_cursor_that_repeats(tmp_path: Path) -> None:
    server = _paged(tmp_path, "repeated_cursor")
    with mcpsync.connect(server.command, name="loop") as client:
        with pytest.raises(PageLimit, match="the cursor 'same' came back after 2 pages") as error:
            client.list_tools()
        assert [tool.name for tool in error.value.partial] == ["item-0", "item-0"]
        assert (error.value.server, error.value.method) == ("loop", "tools/list")
        got = []
        with pytest.raises(PageLimit):
            got.extend(client.iter_tools())
        assert len(server.received("tools/list")) == 4


def test_h2_an_empty_cursor_is_a_cursor(tmp_path: Path) -> None:
    server = _paged(tmp_path, "empty_cursor")
    with mcpsync.connect(server.command) as client:
        assert [tool.name for tool in client.list_tools()] == ["item-0", "item-1"]
    assert [each["params"].get("cursor") for each in server.received("tools/list")] == [None, ""]


def test_h2_a_null_cursor_is_none(tmp_path: Path) -> None:
    server = _paged(tmp_path, "null_cursor")
    with mcpsync.connect(server.command) as client:
        assert len(client.list_tools()) == 1


@pytest.mark.alone
@pytest.mark.timed
def test_h2_ten_thousand_items(tmp_path: Path) -> None:
    server = _paged(tmp_path, "ten_thousand")
    with mcpsync.connect(server.command) as client:
        with took() as listed:
            tools = client.list_tools()
        assert [tool.name for tool in tools] == ["item-%d" % number for number in range(10_000)]
        assert listed.seconds < 3


def test_h2_pages_without_end(tmp_path: Path) -> None:
    server = _paged(tmp_path, "endless_pages")
    with mcpsync.connect(server.command) as client:
        with pytest.raises(PageLimit, match="more than 100 pages; raise page_limit") as error:
            client.list_tools()
        assert len(error.value.partial) == 100
    with mcpsync.connect(server.command, page_limit=3) as client:
        with pytest.raises(PageLimit, match="more than 3 pages") as error:
            client.list_prompts()
        assert len(error.value.partial) == 3


@pytest.mark.timed
def test_h2_page_two_hangs(tmp_path: Path) -> None:
    server = _paged(tmp_path, "page_two_hangs")
    with mcpsync.connect(server.command) as client:
        with took() as ended, pytest.raises(RequestTimeout) as error:
            client.list_tools(timeout=0.3)
        assert 0.3 <= ended.seconds < 0.5
        assert error.value.method == "tools/list"
        got = []
        with pytest.raises(RequestTimeout):
            for tool in client.iter_tools(timeout=0.3):
                got.append(tool.name)
        assert got == ["item-0"]
        assert len(server.wait_for("notifications/cancelled", 2)) == 2


@pytest.mark.timed
def test_h2_one_total_deadline_for_all_pages(tmp_path: Path) -> None:
    def slow_pages(server: Any, request: Any, cursor: str = "0") -> None:
        result = {"tools": [], "nextCursor": str(int(cursor) + 1)}
        server.after(0.1, lambda: server.result(request, result))

    server = peer(tmp_path, handlers={"tools/list": slow_pages})
    with mcpsync.connect(server.command) as client:
        with took() as ended, pytest.raises(RequestTimeout):
            client.list_tools(timeout=Timeouts(call=1, total=0.55))
        assert 0.5 <= ended.seconds < 0.75


@pytest.mark.parametrize("cursor", [5, True, ["x"], {}])
def test_h2_a_cursor_that_is_no_text(tmp_path: Path, cursor: Any) -> None:
    def odd_cursor(server: Any, request: Any, cursor: Any = None) -> Any:
        return {"tools": [], "nextCursor": server.config["capabilities"]["tools"]["odd"]}

    capabilities = {"tools": {"odd": cursor}}
    server = peer(tmp_path, handlers={"tools/list": odd_cursor}, capabilities=capabilities)
    with mcpsync.connect(server.command) as client, pytest.raises(InvalidMessage, match="nextCursor"):
        client.list_tools()


GOOD = {"name": "good", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "result", [{}, {"tools": None}, {"tools": {}}, {"tools": [1, GOOD, {"name": "bad"}, {}, None]}]
)
def test_h2_a_page_that_is_none(tmp_path: Path, result: Dict[str, Any]) -> None:
    def odd_page(server: Any, request: Any) -> Any:
        return server.config["capabilities"]["tools"]["odd"]

    server = peer(tmp_path, handlers={"tools/list": odd_page}, capabilities={"tools": {"odd": result}})
    with mcpsync.connect(server.command) as client:
        try:
            assert [tool.name for tool in client.list_tools()] == ["good"]
        except InvalidMessage as error:
            assert "tools" in str(error)
            assert not isinstance(result.get("tools"), list)


@pytest.mark.parametrize("era", ERAS)
def test_h2_what_a_server_lacks_is_an_empty_list(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era, capabilities={})
    with mcpsync.connect(server.command) as client:
        assert client.list_tools() == client.list_resources() == []
        assert client.list_resource_templates() == client.list_prompts() == []
        client.call_tool("echo")
    assert [each for each in server.received() if each.get("method") in LISTINGS] == []
