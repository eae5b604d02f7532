#!/usr/bin/env python3
"""One benchmark case for one MCP client, in one process; prints one JSON line.

  bench.py --client NAME --transport stdio|http --case CASE [--n N] [--era legacy|modern] [--resp json|sse]

NAME is a module in adapters/ (NAME or NAME:variant).  Run it with the interpreter of the venv the
client lives in (run_all.py does that from clients.json).  Cases: import firstcall connect serial conc8 conc64
blob1m blob10m (kinds ascii,text,struct) queued conns50 progress.
"""

import argparse, asyncio, importlib, json, os, resource, statistics, subprocess, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
SERVER = os.environ.get("BENCH_SERVER", os.path.join(HERE, "servers", "echod"))
PAYLOAD = "x" * 100
pc = time.perf_counter


def status(field):
    for l in open("/proc/self/status"):
        if l.startswith(field + ":"):
            return int(l.split()[1])


def rss():
    return status("VmRSS") / 1024


def cpu():
    return time.process_time()


def pct(a, p):
    a = sorted(a)
    return a[min(len(a) - 1, int(len(a) * p))]


class HttpServer:
    def __init__(self):
        self.p = subprocess.Popen([SERVER, "http", "0"], stdout=subprocess.PIPE)
        self.port = int(self.p.stdout.readline().split()[1])

    def url(self, resp):
        return "http://127.0.0.1:%d/%s" % (self.port, resp)

    def stop(self):
        self.p.terminate()
        self.p.wait()


def lat_summary(lats, wall, c, n):
    return {
        "calls_per_s": n / wall,
        "us_per_call": wall / n * 1e6,
        "p50_us": pct(lats, 0.5) * 1e6,
        "p99_us": pct(lats, 0.99) * 1e6,
        "cpu_s_per_1000": c / n * 1000,
    }


# ---------------------------------------------------------------- sync clients
def run_sync(A, args, target):
    case = args.case
    conn = lambda: (
        A.connect_stdio([SERVER, "stdio"], args.era) if args.transport == "stdio" else A.connect_http(target, args.era)
    )
    if case == "connect":
        out = []
        c = conn()
        c.call("echo", {"text": "warm"})
        c.close()
        for _ in range(args.n or 10):
            t = pc()
            c = conn()
            t1 = pc()
            c.call("echo", {"text": "a"})
            t2 = pc()
            c.close()
            t3 = pc()
            out.append((t1 - t, t2 - t, t3 - t2))
        return {
            "connect_ms": statistics.median(x[0] for x in out) * 1e3,
            "connect_first_call_ms": statistics.median(x[1] for x in out) * 1e3,
            "close_ms": statistics.median(x[2] for x in out) * 1e3,
        }
    if case == "conns50":
        k = args.n or 50
        r0 = rss()
        th0 = threading.active_count()
        cs = []
        t = pc()
        c0 = cpu()
        pool = [None] * k

        def one(i):
            pool[i] = conn()

        ths = [threading.Thread(target=one, args=(i,)) for i in range(k)]
        for x in ths:
            x.start()
        for x in ths:
            x.join()
        wall = pc() - t
        cc = cpu() - c0
        assert all(pool), "a connect failed"
        for c in pool:
            assert c.call("echo", {"text": "a"}) == "a"
        out = {
            "connect_all_ms": wall * 1e3,
            "connect_cpu_ms": cc * 1e3,
            "rss_mb_per_conn": (rss() - r0) / k,
            "rss_mb": rss(),
            "threads": status("Threads"),
            "threads_per_conn": (status("Threads") - th0) / k,
        }
        c0 = cpu()
        ru0 = resource.getrusage(resource.RUSAGE_SELF)
        time.sleep(args.idle)
        ru1 = resource.getrusage(resource.RUSAGE_SELF)
        out["idle_cpu_ms_per_s"] = (cpu() - c0) / args.idle * 1e3
        out["idle_ctx_switches_per_s"] = (ru1.ru_nvcsw - ru0.ru_nvcsw) / args.idle
        t = pc()
        ths = [threading.Thread(target=c.close) for c in pool]
        for x in ths:
            x.start()
        for x in ths:
            x.join()
        out["close_all_ms"] = (pc() - t) * 1e3
        return out
    c = conn()
    try:
        if case == "serial":
            n = args.n or 3000
            call = c.call
            a = {"text": PAYLOAD}
            assert call("echo", a) == PAYLOAD
            for _ in range(max(50, n // 10)):
                call("echo", a)
            lats = []
            c0 = cpu()
            t0 = pc()
            t = t0
            for _ in range(n):
                ok = call("echo", a) == PAYLOAD
                u = pc()
                lats.append(u - t)
                t = u
                if not ok:
                    raise AssertionError("wrong answer")
            return lat_summary(lats, pc() - t0, cpu() - c0, n)
        if case.startswith("conc"):
            k = int(case[4:])
            n = args.n or 4000
            per = max(10, n // k)
            a = {"text": PAYLOAD}
            lats = []
            for _ in range(100):
                c.call("echo", a)
            bar = threading.Barrier(k + 1)
            wrong = []

            def w(me):
                call = c.call
                l = []
                own = [PAYLOAD[:90] + "%03d%07d" % (me, i) for i in range(per)]
                for _ in range(2):
                    call("echo", a)
                bar.wait()
                t = pc()
                for text in own:
                    try:
                        ok = call("echo", {"text": text}) == text
                    except Exception:
                        ok = False
                    u = pc()
                    l.append(u - t)
                    t = u
                    if not ok:
                        wrong.append(text)
                lats.extend(l)

            ths = [threading.Thread(target=w, args=(i,)) for i in range(k)]
            for x in ths:
                x.start()
            bar.wait()
            c0 = cpu()
            t0 = pc()
            for x in ths:
                x.join()
            out = lat_summary(lats, pc() - t0, cpu() - c0, per * k)
            if wrong:
                raise AssertionError("%d wrong answers" % len(wrong))
            return out
        if case.startswith("blob"):
            size = int(case[4:-1]) * 1_000_000
            out = {}
            for kind in ("ascii", "text", "struct"):
                a = {"bytes": size, "kind": kind}
                ts = []
                try:
                    c.call("blob", a)
                    for _ in range(args.n or 5):
                        t = pc()
                        r = c.call("blob", a)
                        ts.append(pc() - t)
                except Exception as e:
                    out[kind + "_error"] = repr(e)[:200]
                    continue
                out[kind + "_ms"] = statistics.median(ts) * 1e3
                if kind == "ascii":
                    assert len(r) == size
                del r
            out.update(loads_ref(size))
            out["maxrss_mb"] = status("VmHWM") / 1024
            return out
        if case == "queued":
            n = args.n or 10000
            r0 = rss()
            c.call("echo", {"text": "a"})
            a = {"until": n}
            t = pc()
            c0 = cpu()
            fs = [c.submit("hold", a) for _ in range(n)]
            t1 = pc()
            for f in fs:
                assert f.result(120) is not None
            w = pc() - t
            return {
                "submit_us_per_req": (t1 - t) / n * 1e6,
                "total_us_per_req": w / n * 1e6,
                "cpu_us_per_req": (cpu() - c0) / n * 1e6,
                "rss_kb_per_req": (rss() - r0) * 1024 / n,
                "threads": status("Threads"),
            }
        if case == "progress":
            n = args.n or 10000
            got = [0]
            want = [1 << 60]
            last = threading.Event()

            def cb(*_):
                got[0] += 1
                if got[0] >= want[0]:
                    last.set()

            c.call_progress("progress", {"n": 10}, cb)
            time.sleep(0.2)
            got[0] = 0
            ts = []
            c0 = cpu()
            for i in range(3):  # the clock stops at the later of the result and the last callback
                last.clear()
                want[0] = (i + 1) * n
                t = pc()
                c.call_progress("progress", {"n": n}, cb)
                if got[0] < want[0] and not last.wait(5):
                    raise AssertionError("%d of %d progress callbacks" % (got[0], want[0]))
                ts.append(pc() - t)
            return {
                "us_per_event": statistics.median(ts) / n * 1e6,
                "cpu_us_per_event": (cpu() - c0) / n / 3 * 1e6,
                "delivered": got[0] / (3 * n),
            }
        if case == "importcost":
            return {"rss_mb": rss()}
    finally:
        c.close()


_ref = {}


def loads_ref(size):
    out = {}
    for kind in ("ascii", "text", "struct"):
        p = subprocess.run(
            [SERVER, "stdio"],
            input=json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "blob", "arguments": {"bytes": size, "kind": kind}},
                }
            ).encode()
            + b"\n",
            stdout=subprocess.PIPE,
        ).stdout
        ts = []
        for _ in range(7):
            t = pc()
            json.loads(p)
            ts.append(pc() - t)
        out["loads_%s_ms" % kind] = statistics.median(ts) * 1e3
    return out


# ---------------------------------------------------------------- native async clients (one loop)
async def run_async(A, args, target):
    case = args.case

    def conn():
        return (
            A.aconnect_stdio([SERVER, "stdio"], args.era)
            if args.transport == "stdio"
            else A.aconnect_http(target, args.era)
        )

    if case == "connect":
        out = []
        async with conn() as c:
            await c.call("echo", {"text": "warm"})
        for _ in range(args.n or 10):
            t = pc()
            async with conn() as c:
                t1 = pc()
                await c.call("echo", {"text": "a"})
                t2 = pc()
            out.append((t1 - t, t2 - t, pc() - t2))
        return {
            "connect_ms": statistics.median(x[0] for x in out) * 1e3,
            "connect_first_call_ms": statistics.median(x[1] for x in out) * 1e3,
            "close_ms": statistics.median(x[2] for x in out) * 1e3,
        }
    if case == "conns50":
        k = args.n or 50
        r0 = rss()
        th0 = status("Threads")
        ready = []
        allup = asyncio.Event()
        stop = asyncio.Event()

        async def one():
            async with conn() as c:
                ready.append(c)
                if len(ready) == k:
                    allup.set()
                await stop.wait()

        t = pc()
        c0 = cpu()
        ts = [asyncio.create_task(one()) for _ in range(k)]
        await asyncio.wait_for(allup.wait(), 120)
        wall = pc() - t
        cc = cpu() - c0
        for c in ready:
            assert await c.call("echo", {"text": "a"}) == "a"
        out = {
            "connect_all_ms": wall * 1e3,
            "connect_cpu_ms": cc * 1e3,
            "rss_mb_per_conn": (rss() - r0) / k,
            "rss_mb": rss(),
            "threads": status("Threads"),
            "threads_per_conn": (status("Threads") - th0) / k,
        }
        c0 = cpu()
        await asyncio.sleep(args.idle)
        out["idle_cpu_ms_per_s"] = (cpu() - c0) / args.idle * 1e3
        t = pc()
        stop.set()
        await asyncio.gather(*ts)
        out["close_all_ms"] = (pc() - t) * 1e3
        return out
    async with conn() as c:
        if case == "serial":
            n = args.n or 3000
            call = c.call
            a = {"text": PAYLOAD}
            assert await call("echo", a) == PAYLOAD
            for _ in range(max(50, n // 10)):
                await call("echo", a)
            lats = []
            c0 = cpu()
            t0 = pc()
            t = t0
            for _ in range(n):
                await call("echo", a)
                u = pc()
                lats.append(u - t)
                t = u
            return lat_summary(lats, pc() - t0, cpu() - c0, n)
        if case.startswith("conc"):
            k = int(case[4:])
            n = args.n or 4000
            per = max(10, n // k)
            a = {"text": PAYLOAD}
            lats = []
            for _ in range(100):
                await c.call("echo", a)

            async def w():
                t = pc()
                for _ in range(per):
                    await c.call("echo", a)
                    u = pc()
                    lats.append(u - t)
                    t = u

            c0 = cpu()
            t0 = pc()
            await asyncio.gather(*[w() for _ in range(k)])
            return lat_summary(lats, pc() - t0, cpu() - c0, per * k)
        if case.startswith("blob"):
            size = int(case[4:-1]) * 1_000_000
            out = {}
            for kind in ("ascii", "text", "struct"):
                a = {"bytes": size, "kind": kind}
                ts = []
                try:
                    await c.call("blob", a)
                    for _ in range(args.n or 5):
                        t = pc()
                        r = await c.call("blob", a)
                        ts.append(pc() - t)
                except Exception as e:
                    out[kind + "_error"] = repr(e)[:200]
                    continue
                out[kind + "_ms"] = statistics.median(ts) * 1e3
            out.update(loads_ref(size))
            out["maxrss_mb"] = status("VmHWM") / 1024
            return out
        if case == "queued":
            n = args.n or 10000
            r0 = rss()
            await c.call("echo", {"text": "a"})
            a = {"until": n}
            t = pc()
            c0 = cpu()
            await asyncio.gather(*[c.call("hold", a) for _ in range(n)])
            w = pc() - t
            return {
                "total_us_per_req": w / n * 1e6,
                "cpu_us_per_req": (cpu() - c0) / n * 1e6,
                "rss_kb_per_req": (rss() - r0) * 1024 / n,
            }
        if case == "progress":
            n = args.n or 10000
            got = [0]

            async def cb(*_):
                got[0] += 1

            await c.call_progress("progress", {"n": 10}, cb)
            got[0] = 0
            ts = []
            c0 = cpu()
            for _ in range(3):
                t = pc()
                await c.call_progress("progress", {"n": n}, cb)
                ts.append(pc() - t)
            await asyncio.sleep(0.5)
            return {
                "us_per_event": statistics.median(ts) / n * 1e6,
                "cpu_us_per_event": (cpu() - c0) / n / 3 * 1e6,
                "delivered": got[0] / (3 * n),
            }


def case_import(A, args):
    """Fresh interpreters: `python -c ''` as baseline against `python -c IMPORT`."""
    stmt = A.IMPORT
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE] + [os.environ.get("PYTHONPATH", "")]))
    probe = "\nimport sys\nprint([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmRSS')][0], len(sys.modules))"
    walls, bases, r, rb, mods = [], [], [], [], 0
    subprocess.run([sys.executable, "-c", stmt], env=env, check=True)
    for _ in range(args.n or 7):
        t = pc()
        o = subprocess.run([sys.executable, "-c", "pass" + probe], env=env, stdout=subprocess.PIPE).stdout.split()
        bases.append(pc() - t)
        rb.append(int(o[0]) / 1024)
        t = pc()
        o = subprocess.run([sys.executable, "-c", stmt + probe], env=env, stdout=subprocess.PIPE).stdout.split()
        walls.append(pc() - t)
        r.append(int(o[0]) / 1024)
        mods = int(o[1])
    xt = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", stmt], env=env, stderr=subprocess.PIPE, text=True
    ).stderr
    tot = sum(
        int(l.split("|")[0].split(":")[1]) for l in xt.splitlines() if l.startswith("import time:") and "self" not in l
    )
    m = statistics.median
    return {
        "import_ms": (m(walls) - m(bases)) * 1e3,
        "python_start_ms": m(bases) * 1e3,
        "importtime_total_ms": tot / 1e3,
        "rss_mb": m(r),
        "rss_added_mb": m(r) - m(rb),
        "modules": mods,
    }


def case_firstcall(A, args, target):
    """Fresh interpreter to the first tool result, less a bare interpreter: wall ms and peak RSS."""
    mod, _, variant = args.client.partition(":")
    src = (
        "import sys,os; sys.path.insert(0,%r); import importlib; A=importlib.import_module('adapters.'+%r); "
        "c=%s; r=c.call('echo',{'text':'a'}); assert r=='a'; "
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')][0],flush=True); os._exit(0)"
        % (
            HERE,
            mod,
            "A.connect_stdio([%r,'stdio'],%r)" % (SERVER, args.era)
            if args.transport == "stdio"
            else "A.connect_http(%r,%r)" % (target, args.era),
        )
    )
    env = dict(os.environ, BENCH_VARIANT=variant)
    walls, bases, r = [], [], []
    subprocess.run([sys.executable, "-c", src], env=env, check=True, stdout=subprocess.DEVNULL)
    for _ in range(args.n or 7):
        t = pc()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bases.append(pc() - t)
        t = pc()
        o = subprocess.run([sys.executable, "-c", src], env=env, stdout=subprocess.PIPE, check=True).stdout
        walls.append(pc() - t)
        r.append(int(o.split()[0]) / 1024)
    return {
        "first_result_ms": (statistics.median(walls) - statistics.median(bases)) * 1e3,
        "maxrss_mb": statistics.median(r),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--client", required=True)
    ap.add_argument("--transport", default="stdio")
    ap.add_argument("--case", required=True)
    ap.add_argument("--n", type=int, default=0)
    ap.add_argument("--era", default="modern")
    ap.add_argument("--resp", default="json")
    ap.add_argument("--idle", type=float, default=10)
    ap.add_argument("--profile", default="")
    args = ap.parse_args()
    mod, _, variant = args.client.partition(":")
    if args.case == "import":
        sys.modules["__bench_import_only__"] = None
        src = open(os.path.join(HERE, "adapters", mod + ".py")).read()
        import re

        class A:
            IMPORT = re.search(r'^IMPORT = "(.*)"', src, re.M).group(1)

        out = case_import(A, args)
    else:
        os.environ["BENCH_VARIANT"] = variant
        import logging

        logging.disable(logging.CRITICAL)
        A = importlib.import_module("adapters." + mod)
        srv = HttpServer() if args.transport == "http" else None
        target = srv.url(args.resp) if srv else None
        try:
            if args.case.startswith("conc") and getattr(A, "ONE_THREAD", False):
                out = {"error": "%s has one thread" % args.client}
            elif args.case == "firstcall":
                out = case_firstcall(A, args, target)
            elif getattr(A, "ASYNC", False):
                out = asyncio.run(run_async(A, args, target))
            elif args.profile:
                import cProfile, pstats

                pr = cProfile.Profile()
                pr.enable()
                out = run_sync(A, args, target)
                pr.disable()
                pstats.Stats(pr, stream=sys.stderr).sort_stats("tottime").print_stats(25)
            else:
                out = run_sync(A, args, target)
        except Exception as e:
            out = {"error": "%s: %s" % (type(e).__name__, str(e)[:300])}
        finally:
            if srv:
                srv.stop()
    print(
        json.dumps(
            {
                "client": args.client,
                "transport": args.transport,
                "case": args.case,
                "era": args.era,
                "resp": args.resp,
                **(out or {"error": "no such case"}),
            }
        ),
        flush=True,
    )
    os._exit(0)


if __name__ == "__main__":
    main()
