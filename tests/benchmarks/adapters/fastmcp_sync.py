"""fastmcp Client, background loop thread."""

IMPORT = "from fastmcp import Client"
from .fastmcp_common import *
from .mcp_common import SyncConn


def connect_stdio(cmd, era):
    return SyncConn(f_stdio(cmd, era))


def connect_http(url, era):
    return SyncConn(f_http(url, era))
