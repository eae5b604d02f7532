"""The level of a tool: annotations of an untrusted server raise it and never lower it."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from mcpsync.host.risk import LEVELS, needs_approval, risk_of
from mcpsync.types import Tool

READ, DESTROY = "readOnlyHint", "destructiveHint"


def annotated(annotations: Optional[Any]) -> Tool:
    wire: Dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}}
    return Tool.from_wire(wire if annotations is None else {**wire, "annotations": annotations})


@pytest.mark.parametrize(
    ("annotations", "untrusted", "trusted"),
    [
        (None, "exec", "write"),
        ({}, "exec", "write"),
        ({READ: True}, "exec", "read_only"),
        ({READ: False}, "exec", "write"),
        ({DESTROY: True}, "dangerous", "exec"),
        ({DESTROY: False}, "exec", "write"),
        ({READ: True, DESTROY: True}, "dangerous", "exec"),
        ({READ: True, "idempotentHint": True, "openWorldHint": False}, "exec", "read_only"),
    ],
)
def test_the_levels(annotations: Optional[Dict[str, Any]], untrusted: str, trusted: str) -> None:
    tool = annotated(annotations)
    assert risk_of(tool.annotations, trusted=False) == untrusted
    assert risk_of(tool.annotations, trusted=True) == trusted


@pytest.mark.parametrize("value", ["yes", "true", 1, [True], {"value": True}])
def test_what_is_no_truth_value_says_nothing(value: Any) -> None:
    annotations = annotated({}).annotations
    object.__setattr__(annotations, "read_only_hint", value)
    object.__setattr__(annotations, "destructive_hint", value)
    assert risk_of(annotations, trusted=False) == "exec"
    assert risk_of(annotations, trusted=True) == "write"


def test_what_is_asked_for() -> None:
    assert [level for level in LEVELS if needs_approval(level)] == ["exec", "dangerous"]
