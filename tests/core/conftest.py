"""Fixtures of the core's tests."""

from __future__ import annotations

import pytest

from mcpsync.core import jsonrpc
from tests.core.codecs import STDLIB, orjson_codec


@pytest.fixture(params=["stdlib", "orjson"])
def codec(request, monkeypatch):
    """Run the test with the standard library's ``json`` and with ``orjson``; gives which of them it is."""
    chosen = STDLIB if request.param == "stdlib" else orjson_codec()
    if chosen is None:
        pytest.skip("orjson is not installed")
    monkeypatch.setattr(jsonrpc, "encode", chosen.encode)
    monkeypatch.setattr(jsonrpc, "decode", chosen.decode)
    jsonrpc._quoted.cache_clear()
    return request.param


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    """Spare the look for processes and threads: the core starts none, which ``tests/test_layers.py`` holds."""
