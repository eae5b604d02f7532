"""Physical floor: same bytes, one thread, no demultiplexing.
stdio: dumps + os.write + os.read-until-newline + loads.   http: variant socket (default) | httpclient | urllib3 | requests | requests_lean | requests_adapter"""

IMPORT = "import json, subprocess"
ONE_THREAD = True  # it reads what it waits for itself
import json, os, subprocess, socket

RS = int(os.environ.get("BENCH_READ", 1 << 16))
V = os.environ.get("BENCH_VARIANT") or "socket"
dumps = json.JSONEncoder(separators=(",", ":")).encode
loads = json.loads
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _text(m):
    r = m["result"]
    c = r["content"]
    return c[0]["text"] if c else r["structuredContent"]


class Done:
    def __init__(self, c, i):
        self.c, self.i = c, i

    def result(self, timeout=None):
        c = self.c
        while self.i not in c.got:
            m = c.read()
            c.got[m["id"]] = m
        return _text(c.got.pop(self.i))


class Stdio:
    def __init__(self, cmd):
        self.p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.fi, self.fo = self.p.stdin.fileno(), self.p.stdout.fileno()
        self.buf = b""
        self.i = 0
        self.got = {}
        self.req("server/discover", {})
        self.lines = []

    lines = ()

    def read(self):
        if self.lines:
            return loads(self.lines.pop())
        parts = [self.buf]
        fo = self.fo
        while True:
            b = os.read(fo, RS)
            if not b:
                raise EOFError
            parts.append(b)
            if b"\n" in b:
                break
        ls = b"".join(parts).split(b"\n")
        self.buf = ls.pop()
        ls.reverse()
        self.lines = ls
        return loads(self.lines.pop())

    def send(self, method, params):
        self.i += 1
        params["_meta"] = META
        os.write(self.fi, dumps({"jsonrpc": "2.0", "id": self.i, "method": method, "params": params}).encode() + b"\n")
        return self.i

    def req(self, method, params):
        self.send(method, params)
        return self.read()

    def call(self, n, a):
        return _text(self.req("tools/call", {"name": n, "arguments": a}))

    def call_progress(self, n, a, cb):
        self.i += 1
        os.write(
            self.fi,
            dumps(
                {
                    "jsonrpc": "2.0",
                    "id": self.i,
                    "method": "tools/call",
                    "params": {"name": n, "arguments": a, "_meta": {**META, "progressToken": self.i}},
                }
            ).encode()
            + b"\n",
        )
        while True:
            m = self.read()
            if "id" in m:
                return _text(m)
            p = m["params"]
            cb(p["progress"], p["total"], p["message"])

    def submit(self, n, a):
        return Done(self, self.send("tools/call", {"name": n, "arguments": a}))

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


def connect_stdio(cmd, era):
    return Stdio(cmd)


H = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
}


class Http:
    def __init__(self, url):
        self.url = url
        self.i = 0
        hp, self.path = url[7:].split("/", 1)
        self.path = "/" + self.path
        h, p = hp.split(":")
        self.h, self.port = h, int(p)
        getattr(self, "init_" + V)()
        self.post = getattr(self, "post_" + V)
        self.req("server/discover", {})

    def req(self, method, params):
        self.i += 1
        params["_meta"] = META
        return loads(self.post(dumps({"jsonrpc": "2.0", "id": self.i, "method": method, "params": params}).encode()))

    def call(self, n, a):
        return _text(self.req("tools/call", {"name": n, "arguments": a}))

    def close(self):
        pass

    def init_socket(self):
        s = self.s = socket.create_connection((self.h, self.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pre = (
            "POST %s HTTP/1.1\r\nHost: %s:%d\r\n" % (self.path, self.h, self.port)
            + "".join("%s: %s\r\n" % x for x in H.items())
        ).encode() + b"Content-Length: "

    def post_socket(self, b):
        s = self.s
        s.sendall(b"%s%d\r\n\r\n%s" % (self.pre, len(b), b))
        d = s.recv(1 << 20)
        e = d.index(b"\r\n\r\n") + 4
        i = d.index(b"Content-Length: ") + 16
        n = int(d[i : d.index(b"\r", i)])
        parts = [d[e:]]
        k = len(d) - e
        while k < n:
            x = s.recv(1 << 20)
            parts.append(x)
            k += len(x)
        return b"".join(parts)

    def init_httpclient(self):
        import http.client

        self.c = http.client.HTTPConnection(self.h, self.port)
        self.c.connect()
        self.c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post_httpclient(self, b):
        self.c.request("POST", self.path, b, H)
        return self.c.getresponse().read()

    def init_urllib3(self):
        import urllib3

        self.c = urllib3.PoolManager()
        self.kw = dict(headers=H, retries=False, redirect=False)

    def post_urllib3(self, b):
        return self.c.urlopen("POST", self.url, body=b, **self.kw).data

    def init_urllib3_pool(self):
        import urllib3

        self.c = urllib3.HTTPConnectionPool(self.h, self.port)
        self.kw = dict(headers=H, retries=False, redirect=False)

    def post_urllib3_pool(self, b):
        return self.c.urlopen("POST", self.path, body=b, **self.kw).data

    def init_urllib3_stream(self):
        self.init_urllib3_pool()

    def post_urllib3_stream(self, b):
        r = self.c.urlopen("POST", self.path, body=b, preload_content=False, **self.kw)
        d = r.read()
        r.release_conn()
        return d

    def init_requests(self):
        import requests

        self.c = requests.Session()

    def post_requests(self, b):
        return self.c.post(self.url, data=b, headers=H).content

    def init_requests_stream(self):
        self.init_requests()

    def post_requests_stream(self, b):
        with self.c.post(self.url, data=b, headers=H, stream=True, allow_redirects=False) as r:
            return r.content

    def init_requests_lean(self):
        import requests

        self.c = requests.Session()
        self.c.trust_env = False
        self.c.headers.clear()
        self.c.headers.update(H)

    def post_requests_lean(self, b):
        return self.c.post(self.url, data=b, allow_redirects=False).content

    def init_requests_prep(self):
        import requests

        self.init_requests_lean()
        self.pr = self.c.prepare_request(requests.Request("POST", self.url, headers=H, data=b"x"))

    def post_requests_prep(self, b):
        p = self.pr.copy()
        p.body = b
        p.headers["Content-Length"] = str(len(b))
        return self.c.send(p, allow_redirects=False).content

    def init_requests_adapter(self):
        self.init_requests_prep()
        self.ad = self.c.get_adapter(self.url)

    def post_requests_adapter(self, b):
        p = self.pr.copy()
        p.body = b
        p.headers["Content-Length"] = str(len(b))
        return self.ad.send(p).content


def connect_http(url, era):
    return Http(url)
