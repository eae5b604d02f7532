"""Official SDK, high-level Client, background loop thread."""

IMPORT = "import mcp"
from .mcp_common import *


def connect_stdio(cmd, era):
    return SyncConn(client_stdio(cmd, era))


def connect_http(url, era):
    return SyncConn(client_http(url, era))
