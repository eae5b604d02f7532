"""Aggregate results.jsonl: report.py [results.jsonl] -> markdown tables of medians with ratios to a base client per case."""

import json, sys, statistics, collections

KEY = {
    "serial": ["us_per_call", "p50_us", "p99_us", "calls_per_s", "cpu_s_per_1000"],
    "conc8": ["us_per_call", "calls_per_s", "p99_us", "cpu_s_per_1000"],
    "conc64": ["us_per_call", "calls_per_s", "p99_us", "cpu_s_per_1000"],
    "connect": ["connect_ms", "connect_first_call_ms", "close_ms"],
    "queued": ["submit_us_per_req", "total_us_per_req", "cpu_us_per_req", "rss_kb_per_req"],
    "progress": ["us_per_event", "cpu_us_per_event", "delivered"],
    "blob1m": ["ascii_ms", "text_ms", "struct_ms", "loads_ascii_ms", "loads_text_ms", "loads_struct_ms", "maxrss_mb"],
    "conns50": [
        "connect_all_ms",
        "connect_cpu_ms",
        "rss_mb_per_conn",
        "rss_mb",
        "threads",
        "idle_cpu_ms_per_s",
        "idle_ctx_switches_per_s",
        "close_all_ms",
    ],
    "firstcall": ["first_result_ms", "maxrss_mb"],
    "import": ["import_ms", "importtime_total_ms", "rss_mb", "rss_added_mb", "modules"],
}
KEY["blob10m"] = KEY["blob50m"] = KEY["blob1m"]
D = collections.defaultdict(lambda: collections.defaultdict(list))
E = {}
order = []
for l in open(sys.argv[1] if len(sys.argv) > 1 else "results.jsonl"):
    d = json.loads(l)
    g = (d["transport"], d["case"], d.get("era", ""), d.get("resp", ""))
    if g not in order:
        order.append(g)
    if "error" in d:
        E[(g, d["client"])] = d["error"]
    for k, v in d.items():
        if k.endswith("_error"):
            E[(g, d["client"])] = v
    D[g][d["client"]].append(d)
f = lambda v: "%.3g" % v if v < 1000 else "%d" % v
for g in order:
    tr, case, era, resp = g
    ms = KEY.get(case, [])
    cl = D[g]
    print(
        "\n### %s / %s (%s%s), median of %d"
        % (tr, case, era, ", " + resp if tr == "http" else "", max(len(v) for v in cl.values()))
    )
    fl = next((c for c in cl if c.startswith("floor")), None)
    print("| client | " + " | ".join(ms) + " | x floor | mcp_sync / it |")
    print("|" + "---|" * (len(ms) + 3))
    med = lambda c, m: (
        (lambda l: statistics.median(l) if l else None)([d[m] for d in cl[c] if m in d]) if c in cl else None
    )
    lead = ms[0] if ms else ""
    for c in cl:
        row = [med(c, m) for m in ms]
        a, b = med(fl, lead) if fl else None, med("mcp_sync", lead)
        x = row[0] if row else None
        print(
            "| %s | %s | %s | %s |%s"
            % (
                c,
                " | ".join("-" if v is None else f(v) for v in row),
                "%.2f" % (x / a) if x and a else "-",
                "%.2f" % (b / x) if x and b else "-",
                " " + E[(g, c)][:110]
                if (g, c) in E and row[0] is None
                else (" (%s)" % E[(g, c)][:80] if (g, c) in E else ""),
            )
        )
