"""Official SDK, ClientSession, native asyncio."""

IMPORT = "from mcp import ClientSession"
ASYNC = True
from .mcp_common import session_stdio as aconnect_stdio, session_http as aconnect_http
