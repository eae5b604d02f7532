"""fastmcp Client, native asyncio."""

IMPORT = "from fastmcp import Client"
ASYNC = True
from .fastmcp_common import f_stdio as aconnect_stdio, f_http as aconnect_http
