"""One server, through blocking methods."""

from mcpsync.client.client import Client, connect

__all__ = ["Client", "connect"]
