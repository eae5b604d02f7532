"""A hook that makes a span of each request, and gives its context to the server: the extra ``otel``.

::

    from mcpsync.client.tracing import Tracing

    client = mcpsync.connect(url, hooks=[Tracing()])

Arguments and results are not recorded: either may hold secrets.

Specification: `basic/index`, "OpenTelemetry trace context" (2026-07-28); names and attributes are those of the semantic
conventions of OpenTelemetry for MCP.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from mcpsync.connection.hooks import Hook, HookedRequest, Outcome
from mcpsync.errors import ConfigError, RpcError

__all__ = ["Tracing"]

_TARGETS = {
    "tools/call": ("name", "gen_ai.tool.name"),
    "prompts/get": ("name", "gen_ai.prompt.name"),
    "resources/read": ("uri", "mcp.resource.uri"),
    "resources/subscribe": ("uri", "mcp.resource.uri"),
    "resources/unsubscribe": ("uri", "mcp.resource.uri"),
}
_IN_NAMES = ("tools/call", "prompts/get")
"""Methods whose target is one of few, and so part of the span's name."""


class Tracing(Hook):
    """Spans of requests, with ``traceparent``, ``tracestate`` and ``baggage`` in ``_meta``, where the caller gave none.

    :param provider: an OpenTelemetry ``TracerProvider``; None: the program's
    :param propagate: whether the server gets the context of the span and the baggage
    :raises ConfigError: OpenTelemetry is not installed
    """

    def __init__(self, provider: Any = None, *, propagate: bool = True) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.baggage.propagation import W3CBaggagePropagator
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            raise ConfigError("tracing needs OpenTelemetry: pip install mcpsync[otel]") from None
        from mcpsync import __version__

        self._trace = trace
        self._tracer = trace.get_tracer("mcpsync", __version__, provider)
        self._propagators = (TraceContextTextMapPropagator(), W3CBaggagePropagator()) if propagate else ()

    def before(self, request: HookedRequest) -> Any:
        """Start a span, a child of the one that is current where the call is made."""
        name, attributes = _described(request)
        span = self._tracer.start_span(name, kind=self._trace.SpanKind.CLIENT, attributes=attributes)
        carrier: Dict[str, str] = {}
        context = self._trace.set_span_in_context(span)
        for propagator in self._propagators:
            propagator.inject(carrier, context)
        for key, value in carrier.items():
            request.meta.setdefault(key, value)
        return span

    def after(self, request: HookedRequest, outcome: Outcome, kept: Any) -> None:
        """End it."""
        if request.request_id is not None:
            kept.set_attribute("jsonrpc.request.id", str(request.request_id))
        kind = _error_type(outcome.result, outcome.error)
        if kind is not None:
            kept.set_attribute("error.type", kind)
            if isinstance(outcome.error, RpcError):
                kept.set_attribute("rpc.response.status_code", str(outcome.error.code))
            kept.set_status(self._trace.StatusCode.ERROR)
        kept.end()


def _described(request: HookedRequest) -> Any:
    """Name and attributes of the span."""
    attributes = {"mcp.method.name": request.method, "mcp.protocol.version": request.protocol_version}
    attributes["mcpsync.server"] = request.server
    key, attribute = _TARGETS.get(request.method, ("", ""))
    target = request.params.get(key)
    if not isinstance(target, str):
        return request.method, attributes
    attributes[attribute] = target
    if request.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    return "%s %s" % (request.method, target) if request.method in _IN_NAMES else request.method, attributes


def _error_type(result: Optional[Mapping[str, Any]], error: Optional[BaseException]) -> Optional[str]:
    if isinstance(error, RpcError):
        return str(error.code)
    if error is not None:
        return type(error).__name__
    return "tool_error" if result is not None and result.get("isError") is True else None
