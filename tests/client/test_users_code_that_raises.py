"""Functions and objects of the user's that HTTP calls on its way, when they raise what nobody expects of them."""

from __future__ import annotations

import gc
import logging
import threading
from typing import Any, Dict, Mapping

import pytest

import mcpsync
from tests.peers.http import HttpPeer
from tests.peers.http_tools import ERAS, serving
from tests.transport.http.wired import descriptors, until

PATIENCE = 10.0


class Vault:
    """Headers, from a place that is closed at times."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __call__(self) -> Dict[str, str]:
        if self.closed.is_set():
            raise LookupError("the vault is closed")
        return {"X-Key": "open"}


@pytest.mark.parametrize("era", ERAS)
def test_headers_that_cannot_be_had_fail_the_call_that_needs_them(era: str) -> None:
    vault = Vault()
    with HttpPeer(serving(era).server) as peer, mcpsync.connect(peer.url, protocol=era, headers=vault) as client:
        vault.closed.set()
        with pytest.raises(LookupError, match="the vault is closed"):
            client.call_tool("echo", {"text": "blocking"})
        submitted = client.submit("echo", {"text": "submitted"}, timeout=60)
        assert isinstance(submitted.exception(PATIENCE), LookupError)
        link = client._connection.link
        assert link is not None and link.working() == []
        vault.closed.clear()
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        assert client.sessions == 1


@pytest.mark.parametrize("era", ERAS)
def test_a_long_stream_that_has_no_headers_costs_no_call(era: str, caplog: pytest.LogCaptureFixture) -> None:
    def headers() -> Dict[str, str]:
        if threading.current_thread().name.endswith("-reader"):  # the long stream is opened there
            raise LookupError("the vault is closed")
        return {}

    def changed(tools: Any) -> None:
        """Without one who wants to know, there is no stream in the modern era."""

    server: Any = serving(era).server
    if era == "modern":
        found = {**server.discovered(), "capabilities": {"tools": {"listChanged": True}}}
        server.discovered = lambda: found
    options: Any = {"protocol": era, "headers": headers, "on_tools_changed": changed}
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, **options) as client:
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        assert client.sessions == 1 and client.state == "ready"
    assert "the vault is closed" in caplog.text
    assert not any(record.levelno >= logging.ERROR for record in caplog.records)


class Forgetful:
    """Signs, and raises when it has seen the answer."""

    def headers(self, method: str, url: str, deadline: Any) -> Mapping[str, str]:
        return {}

    def challenged(self, challenge: Any, deadline: Any) -> bool:
        return False

    def observed(self, url: str, headers: Mapping[str, str]) -> None:
        if self.fails:
            raise LookupError("no place for a nonce")

    fails = False


def test_a_signer_that_raises_leaves_no_connection_behind() -> None:
    signer = Forgetful()
    with HttpPeer(serving("modern").server) as peer, mcpsync.connect(peer.url, auth=signer) as client:
        before = descriptors()
        signer.fails = True
        for _ in range(5):
            with pytest.raises(LookupError, match="no place"):
                client.call_tool("echo", {"text": "x"})
        gc.disable()
        try:
            assert until(lambda: descriptors() <= before)
        finally:
            gc.enable()
