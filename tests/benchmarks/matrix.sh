#!/bin/sh
# The whole table, into results.*.jsonl; report.py makes markdown of it. Run it in BENCH_HOME.
# Pinned: client and server on one CPU, reproducible cost of a call. Awake: all CPUs, kept out of their halt state.
set -eu
cd "$(dirname "$0")"
pin="taskset -c ${CPU:-1}"
out=${OUT:-results}

run() { python3 run_all.py --out "$out.$1.jsonl" --rounds "$2" --cases "$3" --clients "$4"; }
pinned() { $pin python3 run_all.py --out "$out.pinned.jsonl" --rounds "$1" --cases "$2" --clients "$3"; }

ours=mcpsync,mcpsync_orjson
pinned 5 serial "floor,proto:lock,proto:lock+orjson,$ours,mcp_sync,mcp_session_sync,mcp_portal,mcp_async,mcp_session_async,fastmcp_sync,fastmcp_async"
pinned 3 conc8,conc64 "proto:lock,proto:combine,$ours,mcp_sync,mcp_async,fastmcp_sync"
pinned 3 queued,progress "floor,proto:lock,$ours,mcp_sync,mcp_async,fastmcp_sync,fastmcp_async"
pinned 3 connect,firstcall "floor,proto:lock,$ours,mcp_sync,fastmcp_sync"
pinned 3 blob1m,blob10m "floor,proto:lock,proto:lock+orjson,$ours,mcp_sync,mcp_async"
pinned 3 import "floor,proto,$ours,mcp_sync,fastmcp_sync"
run free 3 serial,conc8,conc64,connect "floor,$ours,mcp_sync"
run free 2 conns50 "proto:lock,$ours,mcp_sync,mcp_async,fastmcp_sync"
./awake 1000 &
awake=$!
run awake 3 conc8,conc64 "proto:lock,$ours,mcp_sync,fastmcp_sync"
kill "$awake"
wait "$awake" 2>/dev/null || true
