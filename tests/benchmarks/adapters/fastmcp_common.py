from contextlib import asynccontextmanager
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


def _mode(era):
    return "legacy" if era == "legacy" else "2026-07-28" if era == "pinned" else "auto"


def _text(r):
    return r.content[0].text if r.content else r.structured_content


class AConn:
    def __init__(self, c):
        self.c = c

    async def call(self, name, args):
        return _text(await self.c.call_tool(name, args))

    async def call_progress(self, name, args, cb):
        return _text(await self.c.call_tool(name, args, progress_handler=cb))


@asynccontextmanager
async def f_stdio(cmd, era):
    async with Client(StdioTransport(cmd[0], cmd[1:], keep_alive=False), mode=_mode(era)) as c:
        yield AConn(c)


@asynccontextmanager
async def f_http(url, era):
    async with Client(StreamableHttpTransport(url), mode=_mode(era)) as c:
        yield AConn(c)
