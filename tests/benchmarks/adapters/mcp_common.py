"""Official SDK driven natively (async) and through a background event-loop thread (sync)."""

import asyncio, threading, concurrent.futures
from contextlib import asynccontextmanager
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def _text(r):
    return r.content[0].text if r.content else r.structured_content


def _mode(era):
    return "legacy" if era == "legacy" else "2026-07-28" if era == "pinned" else "auto"


class AConn:
    def __init__(self, c):
        self.c = c

    async def call(self, name, args):
        return _text(await self.c.call_tool(name, args))

    async def call_progress(self, name, args, cb):
        return _text(await self.c.call_tool(name, args, progress_callback=cb))


HTTP_KW = {}


@asynccontextmanager
async def client_stdio(cmd, era):
    async with Client(StdioServerParameters(command=cmd[0], args=cmd[1:]), mode=_mode(era)) as c:
        yield AConn(c)


@asynccontextmanager
async def client_http(url, era):
    async with Client(streamable_http_client(url, **HTTP_KW), mode=_mode(era)) as c:
        yield AConn(c)


@asynccontextmanager
async def _sess(cm, era):
    async with cm as (r, w, *_):
        async with ClientSession(r, w) as s:
            if era == "legacy":
                await s.initialize()
            else:
                from mcp.client._probe import negotiate_auto

                await negotiate_auto(s)
            yield AConn(s)


def session_stdio(cmd, era):
    return _sess(stdio_client(StdioServerParameters(command=cmd[0], args=cmd[1:])), era)


def session_http(url, era):
    return _sess(streamable_http_client(url, **HTTP_KW), era)


class LoopThread:
    """What a sync user writes today: one daemon thread running a loop, run_coroutine_threadsafe per call."""

    _one = None

    @classmethod
    def get(cls):
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def start(self, coro):
        return asyncio.run_coroutine_threadsafe(coro, self.loop)


class SyncConn:
    """Holds the async context open in one task (anyio cancel scopes must be exited by their own task)."""

    def __init__(self, cm):
        self.lt = LoopThread.get()
        ready = concurrent.futures.Future()

        async def life():
            self.stop = asyncio.Event()
            try:
                async with cm as c:
                    self.c = c
                    ready.set_result(None)
                    await self.stop.wait()
            except BaseException as e:
                if not ready.done():
                    ready.set_exception(e)
                else:
                    raise

        self.done = self.lt.start(life())
        ready.result(60)

    def submit(self, name, args):
        return self.lt.start(self.c.call(name, args))

    def call(self, name, args):
        return self.lt.start(self.c.call(name, args)).result()

    def call_progress(self, name, args, cb):
        async def acb(*a):
            cb(*a)

        return self.lt.start(self.c.call_progress(name, args, acb)).result()

    def close(self):
        self.lt.loop.call_soon_threadsafe(self.stop.set)
        self.done.result(30)
