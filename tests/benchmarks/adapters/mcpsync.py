"""mcpsync through its public face, default settings: timeouts, cancellation and types included."""

IMPORT = "import mcpsync"

import mcpsync

PROTOCOL = {"modern": "auto", "legacy": "legacy", "pinned": "2026-07-28"}


def _value(result):
    return result.text or result.structured


class _Submitted:
    def __init__(self, future):
        self.future = future

    def result(self, timeout=60):
        return _value(self.future.result(timeout))


class Conn:
    def __init__(self, client):
        self.client = client

    def call(self, name, args):
        return _value(self.client.call_tool(name, args))

    def submit(self, name, args):
        return _Submitted(self.client.submit(name, args))

    def call_progress(self, name, args, cb):
        return _value(self.client.call_tool(name, args, on_progress=lambda p: cb(p.progress, p.total, p.message)))

    def close(self):
        self.client.close()


def connect_stdio(cmd, era):
    return Conn(mcpsync.connect(cmd, protocol=PROTOCOL[era]))


def connect_http(url, era):
    return Conn(mcpsync.connect(url, protocol=PROTOCOL[era]))
