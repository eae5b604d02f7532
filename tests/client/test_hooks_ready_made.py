"""The hooks that come with the library: traces and records."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import stat
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

import mcpsync
from mcpsync import ConfigError, Hook, RpcError
from mcpsync.client.recording import Recording
from mcpsync.client.tracing import Tracing
from mcpsync.connection.hooks import HookedRequest
from tests.peers.scripted import peer

MISSING = importlib.util.find_spec("opentelemetry") is None and not os.environ.get("CI")
traced = pytest.mark.skipif(MISSING, reason="opentelemetry is not installed")


def provider() -> Any:
    """A provider of OpenTelemetry's interface; ``spans`` are those that have ended."""
    from opentelemetry import trace

    class Span(trace.NonRecordingSpan):
        def __init__(self, name: str, kind: Any, attributes: Dict[str, Any], parent: Any) -> None:
            trace_id = parent.trace_id or 0xABC
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            super().__init__(trace.SpanContext(trace_id, 0x10 + len(made.spans), False, flags))
            self.name, self.kind, self.attributes, self.parent = name, kind, dict(attributes), parent
            self.failed = False

        def set_attribute(self, key: str, value: Any) -> None:
            self.attributes[key] = value

        def set_status(self, status: Any, description: Any = None) -> None:
            self.failed = status is trace.StatusCode.ERROR

        def end(self, end_time: Any = None) -> None:
            made.spans.append(self)

    class Tracer(trace.NoOpTracer):
        def start_span(self, name: str, context: Any = None, **more: Any) -> Any:
            parent = trace.get_current_span(context).get_span_context()
            return Span(name, more["kind"], more["attributes"], parent)

    class Provider(trace.NoOpTracerProvider):
        spans: List[Any]

        def get_tracer(self, *names: Any, **more: Any) -> Any:
            return Tracer()

    made = Provider()
    made.spans = []
    return made


@traced
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_span_per_request_whose_context_the_server_gets(tmp_path: Path, era: str) -> None:
    from opentelemetry import baggage, context, trace

    spans = provider()
    server = peer(tmp_path, era=era)
    with mcpsync.connect(server.command, hooks=[Tracing(spans)], name="peer") as client:
        span = trace.NonRecordingSpan(trace.SpanContext(0xDEF, 0x7, False, trace.TraceFlags(1)))
        outer = context.attach(baggage.set_baggage("tenant", "t1", trace.set_span_in_context(span)))
        try:
            client.call_tool("echo", {"text": "on"})
            client.submit("echo").result(10)
            client.call_tool("echo", meta={"traceparent": "the caller's own"})
        finally:
            context.detach(outer)
    first, second, third = (each["params"]["_meta"] for each in server.received("tools/call"))
    assert first["traceparent"] == "00-%032x-%016x-01" % (0xDEF, 0x10)
    assert first["baggage"] == "tenant=t1"
    assert second["traceparent"].startswith("00-%032x-" % 0xDEF)
    assert third["traceparent"] == "the caller's own"
    span = spans.spans[0]
    assert (span.name, span.kind, span.failed) == ("tools/call echo", trace.SpanKind.CLIENT, False)
    assert span.attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": {"legacy": "2025-11-25", "modern": "2026-07-28"}[era],
        "mcpsync.server": "peer",
        "gen_ai.tool.name": "echo",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": str(server.received("tools/call")[0]["id"]),
    }


@traced
def test_spans_of_what_fails(tmp_path: Path) -> None:
    def failing(server, request):
        return {"isError": True, "content": []}

    spans = provider()
    with mcpsync.connect(peer(tmp_path, failing).command, hooks=[Tracing(spans, propagate=False)]) as client:
        client.call_tool("failing", check=False)
        with pytest.raises(RpcError):
            client.call_tool("error", {"code": -32000})
        with pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("silent", timeout=0.05)
        client.list_tools()
    kinds = [span.attributes.get("error.type") for span in spans.spans]
    assert kinds == ["tool_error", "-32000", "RequestTimeout", None]
    assert [span.failed for span in spans.spans] == [True, True, True, False]
    assert spans.spans[1].attributes["rpc.response.status_code"] == "-32000"
    assert spans.spans[3].name == "tools/list"


def test_without_opentelemetry_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"mcpsync\[otel\]"):
        Tracing()


class Keyed(Hook):
    def before(self, request: HookedRequest) -> None:
        request.headers.update({"X-Api-Key": "hidden", "X-Trace": "t1"})


def lines(path: Path) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_record_has_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record = pickle.loads(pickle.dumps(Recording(path, headers=True)))
    hooks = [Keyed(), record, Recording(tmp_path / "short", results=False)]
    arguments = {"text": "é", "auth": {"api_keys": ["hidden"], "rows": [{"password": "hidden", "n": 1}]}}
    with mcpsync.connect(peer(tmp_path).command, hooks=hooks, name="peer") as client:
        with pytest.raises(mcpsync.McpError):
            client.call_tool("error", {"code": -32000, "message": "no\nway"})
        client.call_tool("echo", {"text": "é"}, meta={"com.example/token": "hidden"})
        with pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("silent", arguments, timeout=0.05)
    failed, good, slow = lines(path)
    assert failed["error"]["code"] == -32000 and failed["error"]["type"] == "RpcError"
    assert "\n" not in failed["error"]["message"] and failed["server"] == "peer"
    assert good["result"]["content"][0]["text"] == "é" and good["seconds"] > 0 and good["id"] > failed["id"]
    assert good["meta"] == {"com.example/token": "***"}
    assert good["headers"] == {"X-Api-Key": "***", "X-Trace": "t1"}
    assert slow["params"]["arguments"]["auth"] == {"api_keys": "***", "rows": [{"password": "***", "n": 1}]}
    assert "hidden" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    short = lines(tmp_path / "short")
    assert short[1]["result"] == "***" and "headers" not in short[1]
