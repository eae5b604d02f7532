"""Official SDK, high-level Client, anyio BlockingPortal (anyio.from_thread.start_blocking_portal)."""

IMPORT = "import mcp, anyio.from_thread"
from .mcp_common import *
from anyio.from_thread import start_blocking_portal

_p = None


def portal():
    global _p
    if _p is None:
        _cm = start_blocking_portal()
        _p = _cm.__enter__()
        portal.cm = _cm
    return _p


class PConn:
    def __init__(self, cm):
        self.p = portal()
        self.w = self.p.wrap_async_context_manager(cm)
        self.c = self.w.__enter__()

    def call(self, n, a):
        return self.p.call(self.c.call, n, a)

    def submit(self, n, a):
        return self.p.start_task_soon(self.c.call, n, a)

    def call_progress(self, n, a, cb):
        async def acb(*x):
            cb(*x)

        return self.p.call(self.c.call_progress, n, a, acb)

    def close(self):
        self.w.__exit__(None, None, None)


def connect_stdio(cmd, era):
    return PConn(client_stdio(cmd, era))


def connect_http(url, era):
    return PConn(client_http(url, era))
