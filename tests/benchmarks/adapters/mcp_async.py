"""Official SDK, high-level Client, native asyncio."""

IMPORT = "import mcp"
ASYNC = True
from .mcp_common import client_stdio as aconnect_stdio, client_http as aconnect_http
