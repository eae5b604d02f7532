"""Servers with a URL, on the command line and in a config file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import document, mcpsync
from tests.peers.http import HttpPeer
from tests.peers.http_servers import Legacy, Modern, Older
from tests.peers.sockets import LineServer, scripted_behind


@pytest.mark.parametrize("server", [Modern, Legacy, Older])
def test_a_url_with_headers(server: Any) -> None:
    with HttpPeer(server()) as peer:
        header = ["--url", peer.url, "--header", "Authorization: Bearer ${TOKEN}"]
        done = mcpsync("call", "work", *header, env={"TOKEN": "hidden"})
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
        assert {request.headers["authorization"] for request in peer.requests} == {"Bearer hidden"}


def test_a_transport_by_name() -> None:
    with HttpPeer(Older()) as peer:
        assert mcpsync("tools", "--url", peer.url, "--transport", "sse").returncode == 0
        assert peer.requests[0].method == "GET"
        done = mcpsync("tools", "--url", peer.url, "--transport", "http")
        assert (done.returncode, done.stdout) == (3, "")
        assert "HTTP 405" in done.stderr
        assert "GET" not in [request.method for request in peer.requests[-2:]]


def test_what_is_wrong_with_a_url() -> None:
    done = mcpsync("tools", "--url", "ftp://example.com/")
    assert done.returncode == 2
    assert "http:// or https://" in done.stderr
    with HttpPeer(lambda exchange: exchange.respond(401, "no", "text/plain")) as peer:
        done = mcpsync("tools", "--url", peer.url + "/hidden?key=hidden")
        assert done.returncode == 3
        assert "HTTP 401" in done.stderr and "hidden" not in done.stderr


def test_urls_of_a_config_file_get_their_headers_and_transports(tmp_path: Path) -> None:
    with HttpPeer(Modern()) as modern, HttpPeer(Older()) as older:
        servers = {
            "new": {"url": modern.url, "headers": {"X-Token": "${TOKEN:-given}"}},
            "old": {"url": older.url, "type": "sse"},
        }
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        entries = document("tools", "--config", str(file))["servers"]
        assert [[tool["name"] for tool in entry["tools"]] for entry in entries] == [["work"], ["work"]]
        assert {request.headers["x-token"] for request in modern.requests} == {"given"}
        assert older.requests[0].method == "GET"


def test_a_stream_over_a_unix_socket() -> None:
    with LineServer(scripted_behind([sys.executable, "-m", "mcpsync.demo"])) as at:
        done = mcpsync("call", "add", "a=1", "b=2", "--url", at.url)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, '{"sum": 3}', "")
        refused = mcpsync("ping", "--url", at.url, "--header", "A: b")
        assert refused.returncode == 2 and "over HTTP" in refused.stderr
