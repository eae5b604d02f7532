"""The private authority of these tests."""

from __future__ import annotations

from tests.peers.network import authority, no_environment

__all__ = ["authority", "no_environment"]
