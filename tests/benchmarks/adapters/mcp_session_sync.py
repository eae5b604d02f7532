"""Official SDK, ClientSession, background loop thread."""

IMPORT = "from mcp import ClientSession; from mcp.client.stdio import stdio_client"
from .mcp_common import *


def connect_stdio(cmd, era):
    return SyncConn(session_stdio(cmd, era))


def connect_http(url, era):
    return SyncConn(session_http(url, era))
