"""MCP Apps: what tools say of user interfaces, pages of apps, and who is told that they are rendered."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Dict

import pytest

import mcpsync
from mcpsync import ProtocolError
from mcpsync.errors import ToolBlocked
from mcpsync.extensions import apps
from mcpsync.types import Tool
from tests.host.watching import entry, host_of, names, row
from tests.peers.scripted import peer

BOTH = frozenset(("model", "app"))
PAGE = "ui://weather/page"


def tool(**meta: Any) -> Tool:
    return Tool.from_wire({"name": "t", "inputSchema": {"type": "object"}, "_meta": meta})


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({}, (None, BOTH)),
        ({"ui": {"resourceUri": PAGE}}, (PAGE, BOTH)),
        ({"ui": {"resourceUri": PAGE, "visibility": ["app"]}}, (PAGE, {"app"})),
        ({"ui": {"visibility": ["model"]}}, (None, {"model"})),
        ({"ui": {"visibility": []}}, (None, frozenset())),
        ({"ui/resourceUri": PAGE}, (PAGE, BOTH)),
        ({"ui": {"resourceUri": PAGE}, "ui/resourceUri": "ui://old"}, (PAGE, BOTH)),
        ({"ui": {"resourceUri": "https://a.example/", "visibility": "app"}}, (None, BOTH)),
        ({"ui": {"resourceUri": 5, "visibility": [5, "app"]}}, (None, {"app"})),
        ({"ui": [1]}, (None, BOTH)),
    ],
)
def test_what_a_tool_says(meta: Dict[str, Any], said: Any) -> None:
    assert apps.ui_of(tool(**meta)) == said


def test_metadata_passes_untouched() -> None:
    meta = {"ui": {"resourceUri": PAGE, "visibility": ["app"], "com.example/more": [1]}, "x/y": None}
    assert tool(**meta).meta == meta
    assert tool(**meta).to_wire()["_meta"] == meta


def listing(server, request):
    schema = {"type": "object"}
    return {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "tools": [
            {"name": "show", "inputSchema": schema, "_meta": {"ui": {"resourceUri": "ui://weather/page"}}},
            {"name": "refresh", "inputSchema": schema, "_meta": {"ui": {"visibility": ["app"]}}},
        ],
    }


def refresh(server, request):
    return "refreshed"


def page(server, request, uri):
    kind = "text/html;profile=mcp-app"
    ui = {"csp": {"connectDomains": ["https://a.example"]}, "prefersBorder": True}
    contents = {
        "ui://weather/page": {"mimeType": "text/html; profile=MCP-app", "text": "<p>", "_meta": {"ui": ui}},
        "ui://weather/blob": {"mimeType": kind, "blob": "PHA+w6k="},
        "ui://weather/bad": {"mimeType": kind, "blob": "/w=="},
        "ui://weather/plain": {"mimeType": "text/html", "text": "<p>"},
    }
    more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {"contents": [{"uri": uri, **contents[uri]}], **more}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_that_renders_says_so_and_reads_pages(tmp_path: Path, era: str) -> None:
    server = peer(tmp_path, era=era, handlers={"tools/list": listing, "resources/read": page})
    with mcpsync.connect(server.command, extensions=apps.EXTENSION) as client:
        show, hidden = client.list_tools()
        ui = apps.ui_of(show)
        assert ui.resource_uri == PAGE and ui.for_model and ui.for_app
        assert not apps.ui_of(hidden).for_model
        shown = apps.read(client, ui.resource_uri)
        assert (shown.uri, shown.html) == (PAGE, "<p>")
        assert shown.meta == {"csp": {"connectDomains": ["https://a.example"]}, "prefersBorder": True}
        blob = apps.read(client, "ui://weather/blob")
        assert (blob.html, blob.meta) == (base64.b64decode("PHA+w6k=").decode(), {})
        for uri, told in (("ui://weather/bad", "UTF-8"), ("ui://weather/plain", "has no"), ("file:///x", "ui://")):
            with pytest.raises(ProtocolError, match=told):
                apps.read(client, uri)
    if era == "legacy":
        declared = server.received("initialize")[0]["params"]["capabilities"]
    else:
        meta = server.received("tools/list")[0]["params"]["_meta"]
        declared = meta["io.modelcontextprotocol/clientCapabilities"]
    assert declared["extensions"] == {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


@pytest.mark.parametrize("renders", [False, True])
def test_a_host_hides_from_the_model_what_is_for_apps_alone(tmp_path: Path, renders: bool) -> None:
    server = peer(tmp_path, refresh, era="modern", handlers={"tools/list": listing})
    options: Dict[str, Any] = {"extensions": apps.EXTENSION} if renders else {}
    with host_of({"w": entry(server.command)}, **options) as host:
        assert names(host) == ["mcp__w__show"]
        assert [each["function"]["name"] for each in host.export_tools("openai")] == ["mcp__w__show"]
        with pytest.raises(ToolBlocked, match="own app"):
            host.call_tool("mcp__w__refresh")
        call = {"id": "1", "function": {"name": "mcp__w__refresh", "arguments": "{}"}}
        assert "own app" in host.dispatch("openai", call)["content"]
        assert "refresh: it is for the server's own app" in str(row(host, "w").refused)
        assert host.client("w").call_tool("refresh").text == "refreshed"  # for the app that the program shows
    meta = server.received("tools/list")[0]["params"]["_meta"]
    assert ("extensions" in meta["io.modelcontextprotocol/clientCapabilities"]) is renders
