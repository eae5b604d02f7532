"""Prototype of the design: caller writes under a lock, one reader thread per connection, one wake-up primitive per request.
variants (joined by +): wake lock|future|event|cond|squeue|leader ; json|orjson|msgspec ; http backend requests|requests_lean|requests_adapter|urllib3|httpclient|socket"""

IMPORT = "import threading, subprocess, json, queue"
import json, os, subprocess, threading, _thread, time, select
from concurrent.futures import Future
from queue import SimpleQueue

VS = set(filter(None, (os.environ.get("BENCH_VARIANT") or "lock").split("+")))
loads = json.loads
_enc = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def dumps(o):
    return _enc(o).encode()


if "orjson" in VS:
    import orjson

    loads = orjson.loads
    dumps = orjson.dumps
if "msgspec" in VS:
    import msgspec

    loads = msgspec.json.Decoder().decode
    dumps = msgspec.json.Encoder().encode
if "tmpl" in VS:  # stdlib only: cached _meta bytes, no detect_encoding
    _dec = json.JSONDecoder().decode

    def loads(b):
        return _dec(b.decode())


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
if "tmpl" in VS:
    _esc = json.encoder.encode_basestring
    _META = _enc(META)
    _full = dumps

    def dumps(o):
        p = o["params"]
        if p.get("_meta") is not META or len(p) != 3:
            return _full(o)
        return (
            '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":%s}}'
            % (o["id"], _esc(p["name"]), _enc(p["arguments"]), _META)
        ).encode()


class RpcError(Exception):
    pass


def _text(m):
    r = m.get("result")
    if r is None:
        raise RpcError(m.get("error"))
    c = r["content"]
    return c[0]["text"] if c else r["structuredContent"]


# ---- wake-up primitives: .set(msg) from the reader, .wait() in the caller
class WLock:
    __slots__ = ("l", "m")

    def __init__(self):
        self.l = _thread.allocate_lock()
        self.l.acquire()

    def set(self, m):
        self.m = m
        self.l.release()

    def wait(self, timeout=-1):
        if not self.l.acquire(True, timeout):
            raise TimeoutError
        return self.m


class WFuture:
    __slots__ = ("f", "set")

    def __init__(self):
        self.f = Future()
        self.set = self.f.set_result

    def wait(self, timeout=None):
        return self.f.result(timeout)


class WEvent:
    __slots__ = ("e", "m")

    def __init__(self):
        self.e = threading.Event()

    def set(self, m):
        self.m = m
        self.e.set()

    def wait(self, timeout=None):
        if not self.e.wait(timeout):
            raise TimeoutError
        return self.m


class WQueue:
    __slots__ = ("q", "set")

    def __init__(self):
        self.q = SimpleQueue()
        self.set = self.q.put

    def wait(self, timeout=None):
        return self.q.get(True, timeout)


class WCond:  # one shared condition per connection
    C = threading.Condition()
    __slots__ = ("m",)

    def __init__(self):
        self.m = None

    def set(self, m):
        with self.C:
            self.m = m
            self.C.notify_all()

    def wait(self, timeout=None):
        with self.C:
            if not self.C.wait_for(lambda: self.m is not None, timeout):
                raise TimeoutError
        return self.m


W = (
    WFuture
    if "future" in VS
    else WEvent
    if "event" in VS
    else WQueue
    if "squeue" in VS
    else WCond
    if "cond" in VS
    else WLock
)


class Sub:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w

    def result(self, timeout=60):
        return _text(self.w.wait(timeout))


class Stdio:
    def __init__(self, cmd):
        self.p = p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.fi, self.fo = p.stdin.fileno(), p.stdout.fileno()
        if "bigpipe" in VS:
            import fcntl

            fcntl.fcntl(self.fo, 1031, 1 << 20)
        import itertools, collections

        self.ids = itertools.count(1)
        self.q = collections.deque()
        if "nolock" in VS:
            self.post = self.post_nolock
        if "combine" in VS:
            self.post = self.post_combine
        self.wl = _thread.allocate_lock()
        self.pend = {}
        self.prog = {}
        self.n = 0
        self.tail = []
        self.closed = False
        self.t = threading.Thread(target=self.reader, daemon=True)
        self.t.start()
        self.rpc("server/discover", {"_meta": META})

    def reader(self):
        fo = self.fo
        feed = self.feed
        while True:
            b = os.read(fo, 1 << 16)
            if not b:
                break
            feed(b)
        self.closed = True
        for w in list(self.pend.values()):
            w.set({"error": "closed"})

    def feed(self, b):
        pop = self.pend.pop
        tail = self.tail
        if b[-1] == 10 and not tail and b.count(b"\n") == 1:
            m = loads(b)
            if "id" in m and "method" not in m:
                pop(m["id"]).set(m)
            else:
                self.inbound(m)
            return
        ls = b.split(b"\n")
        if len(ls) == 1:
            tail.append(b)
            return
        if tail:
            tail.append(ls[0])
            ls[0] = b"".join(tail)
            tail.clear()
        last = ls.pop()
        if last:
            tail.append(last)
        for l in ls:
            m = loads(l)
            if "id" in m and "method" not in m:
                pop(m["id"]).set(m)
            else:
                self.inbound(m)

    def inbound(self, m):
        p = m["params"]
        cb = self.prog.get(p["progressToken"])
        if cb:
            cb(p["progress"], p["total"], p.get("message"))

    def post(self, method, params, cb=None):
        w = W()
        if self.closed:
            raise RpcError("closed")
        with self.wl:
            self.n = i = self.n + 1
            if cb:
                params["_meta"] = {**META, "progressToken": i}
                self.prog[i] = cb
            self.pend[i] = w
            b = dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) + b"\n"
            k = os.write(self.fi, b)
            while k < len(b):
                k += os.write(self.fi, b[k:])
        return w

    def post_nolock(self, method, params, cb=None):
        """frames <= PIPE_BUF need no lock: POSIX makes them atomic on a pipe (bigger ones would take the lock)"""
        w = W()
        i = next(self.ids)
        if cb:
            params["_meta"] = {**META, "progressToken": i}
            self.prog[i] = cb
        self.pend[i] = w
        os.write(self.fi, dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) + b"\n")
        return w

    def post_combine(self, method, params, cb=None):
        """flat combining: append the frame; whoever gets the lock writes everything queued in one write"""
        w = W()
        i = next(self.ids)
        if cb:
            params["_meta"] = {**META, "progressToken": i}
            self.prog[i] = cb
        self.pend[i] = w
        q = self.q
        q.append(dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) + b"\n")
        wl = self.wl
        while q and wl.acquire(False):
            try:
                if len(q) == 1:
                    b = q.popleft()
                else:
                    l = []
                    while q:
                        l.append(q.popleft())
                    b = b"".join(l)
                k = os.write(self.fi, b)
                while k < len(b):
                    k += os.write(self.fi, b[k:])
            finally:
                wl.release()
        return w

    def rpc(self, method, params):
        return self.post(method, params).wait()

    def call(self, name, args):
        return _text(self.post("tools/call", {"name": name, "arguments": args, "_meta": META}).wait())

    def submit(self, name, args):
        return Sub(self.post("tools/call", {"name": name, "arguments": args, "_meta": META}))

    def call_progress(self, name, args, cb):
        return _text(self.post("tools/call", {"name": name, "arguments": args}, cb).wait())

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.t.join()
        self.p.stdout.close()


class Leader(Stdio):
    """Same, but while calls are active the *caller* reads the pipe (leader/follower); the reader thread only holds the
    read role when no caller has for GRACE seconds, so a serial call needs no thread switch at all."""

    GRACE = 0.01

    def __init__(self, cmd):
        self.role = _thread.allocate_lock()
        self.rp, self.wp = os.pipe()
        self.idle_reading = False
        self.last = 0.0
        super().__init__(cmd)

    def reader(self):
        fo = self.fo
        po = select.poll()
        po.register(fo, 1)
        po.register(self.rp, 1)
        role = self.role
        while not self.closed:
            quiet = time.monotonic() - self.last
            if quiet < self.GRACE or self.pend:
                time.sleep(self.GRACE)
            if self.pend and quiet < self.GRACE * 5:
                continue
            with role:
                self.idle_reading = True
                ev = po.poll()
                self.idle_reading = False
                fds = [f for f, _ in ev]
                if self.rp in fds:
                    os.read(self.rp, 64)
                if fo in fds:
                    b = os.read(fo, 1 << 16)
                    if not b:
                        break
                    self.feed(b)
        self.closed = True
        for w in list(self.pend.values()):
            w.set({"error": "closed"})

    def wait_for(self, w):
        role = self.role
        l = w.l
        fo = self.fo
        self.last = time.monotonic()
        while True:
            if role.acquire(False):
                break
            if self.idle_reading:
                self.last = time.monotonic()
                os.write(self.wp, b"x")
            if l.acquire(True, 0.002):
                return w.m  # a leader delivered to us
        try:
            while True:
                if l.acquire(False):
                    return w.m
                b = os.read(fo, 1 << 16)
                if not b:
                    raise RpcError("closed")
                self.feed(b)
        finally:
            role.release()
            self.last = time.monotonic()

    def rpc(self, method, params):
        return self.wait_for(self.post(method, params))

    def call(self, name, args):
        return _text(self.wait_for(self.post("tools/call", {"name": name, "arguments": args, "_meta": META})))

    def close(self):
        self.closed = True
        os.write(self.wp, b"x")
        self.p.stdin.close()
        self.p.wait()
        self.t.join()
        self.p.stdout.close()
        os.close(self.rp)
        os.close(self.wp)


def connect_stdio(cmd, era):
    return Leader(cmd) if "leader" in VS else Stdio(cmd)


# ---------------------------------------------------------------- HTTP: the caller thread does the POST itself
H = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
}


class SSE:
    """Hand SSE parser on bytes: feed(chunk) -> list of data payloads (bytes). Linear; CRLF, CR and LF; decodes nothing."""

    __slots__ = ("tail", "cr")

    def __init__(self):
        self.tail = []
        self.cr = False

    def feed(self, b):
        out = []
        if b"\r" in b or self.cr:
            if self.cr and b[:1] == b"\n":
                b = b[1:]
            self.cr = b[-1:] == b"\r"
            b = b.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        t = self.tail
        if not b:
            return out
        if t and t[-1][-1:] == b"\n" and b[:1] == b"\n":
            pass
        elif b"\n\n" not in b:
            t.append(b)
            return out
        if t:
            t.append(b)
            b = b"".join(t)
            t.clear()
        evs = b.split(b"\n\n")
        last = evs.pop()
        if last:
            t.append(last)
        for e in evs:
            d = [l[6:] if l[5:6] == b" " else l[5:] for l in e.split(b"\n") if l.startswith(b"data:")]
            if d:
                out.append(d[0] if len(d) == 1 else b"\n".join(d))
        return out


class Http:
    def __init__(self, url):
        self.url = url
        self.n = 0
        self.tl = threading.local()
        hp, p = url[7:].split("/", 1)
        self.path = "/" + p
        h, q = hp.split(":")
        self.h, self.port = h, int(q)
        if VS & {"requests", "requests_lean", "requests_adapter"}:
            import requests
            from requests.adapters import HTTPAdapter

            self.s = requests.Session()
            self.s.mount("http://", HTTPAdapter(pool_maxsize=128))
            self.open = self.open_requests
            if not "requests" in VS:
                self.s.trust_env = False
                self.s.headers.clear()
                self.s.headers.update(H)
                self.open = self.open_lean
            if "requests_adapter" in VS:
                self.pr = self.s.prepare_request(requests.Request("POST", url, headers=H, data=b"x"))
                self.ad = self.s.get_adapter(url)
                self.open = self.open_adapter
        elif "httpclient" in VS:
            self.open = self.open_httpclient
        else:
            import urllib3

            self.pool = urllib3.HTTPConnectionPool(self.h, self.port, maxsize=128)
            self.open = self.open_urllib3
        self.rpc("server/discover", {"_meta": META})

    def open_requests(self, b):
        return self.s.post(self.url, data=b, headers=H, stream=True).raw

    def open_lean(self, b):
        return self.s.post(self.url, data=b, stream=True, allow_redirects=False).raw

    def open_adapter(self, b):
        p = self.pr.copy()
        p.body = b
        p.headers["Content-Length"] = str(len(b))
        return self.ad.send(p, stream=True).raw

    def open_urllib3(self, b):
        return self.pool.urlopen(
            "POST", self.path, body=b, headers=H, retries=False, redirect=False, preload_content=False
        )

    def open_httpclient(self, b):
        c = getattr(self.tl, "c", None)
        if c is None:
            import http.client, socket

            c = self.tl.c = http.client.HTTPConnection(self.h, self.port)
            c.connect()
            c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        c.request("POST", self.path, b, H)
        return c.getresponse()

    def rpc(self, method, params, cb=None):
        self.n = i = self.n + 1
        if cb:
            params["_meta"] = {**META, "progressToken": i}
        r = self.open(dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}))
        rel = getattr(r, "release_conn", None)
        if r.headers["content-type"].startswith("application/json"):
            d = r.read()
            if rel:
                rel()
            return loads(d)
        p = SSE()
        res = None
        read1 = r.read1
        while True:
            b = read1(1 << 16)
            if not b:
                break
            for d in p.feed(b):
                m = loads(d)
                if "id" in m:
                    res = m
                elif cb:
                    q = m["params"]
                    cb(q["progress"], q["total"], q["message"])
        if rel:
            rel()
        return res

    def call(self, n, a):
        return _text(self.rpc("tools/call", {"name": n, "arguments": a, "_meta": META}))

    def call_progress(self, n, a, cb):
        return _text(self.rpc("tools/call", {"name": n, "arguments": a}, cb))

    def close(self):
        pass


def connect_http(url, era):
    return Http(url)
