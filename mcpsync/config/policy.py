"""What a file says of safety: :class:`~mcpsync.config.Policy`.

What is not understood is never read as the weaker choice.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from mcpsync.config.detect import ABSENT, at
from mcpsync.config.diagnose import Report, Where, kind
from mcpsync.config.dialects import Dialect
from mcpsync.config.model import Policy

__all__ = ["read_policy"]

_WORDS: Mapping[str, Tuple[Mapping[str, str], str]] = {
    "suspicious": ({"block": "block", "warn": "warn"}, "block"),
    "network": ({"deny": "deny", "allow": "allow"}, "deny"),
    "profile": (
        {
            "interactive": "interactive",
            "personal_cli": "interactive",
            "daemon": "daemon",
            "public_gateway": "public_gateway",
        },
        "public_gateway",
    ),
}
"""For each field its words with what they mean, and what anything else is taken for."""


def read_policy(data: Mapping[str, Any], dialect: Dialect, report: Report) -> Policy:
    """The policy of a file whose layout has one; else the default."""
    said: Dict[str, Any] = {"network": dialect.network}
    for field, places in dialect.policies.items():
        if field in ("allow", "deny"):
            said[field] = _names(data, places, report)
            continue
        where = next((each for each in places if at(data, each) not in (ABSENT, None, "")), None)
        if where is not None:
            value = _value(field, at(data, where), where, report)
            if value is not None:
                said[field] = value
    exclusive = any(at(data, each) for each in dialect.policies.get("allow", ())[:1] if at(data, each) is not ABSENT)
    return Policy(**said, exclusive=exclusive)


def _value(field: str, value: Any, where: Where, report: Report) -> Optional[Any]:
    if field == "elevated":
        if isinstance(value, bool):
            return value
        report.add("warning", where, "must be true or false, and is %s: taken as false" % kind(value))
        return False
    if field == "approval":
        if isinstance(value, str):
            return value
        report.add("warning", where, "must be a word, and is %s: not used" % kind(value))
        return None
    known, strictest = _WORDS[field]
    if isinstance(value, str) and value in known:
        return known[value]
    report.add("warning", where, "must be one of %s: taken as %s" % (", ".join(known), strictest))
    return strictest


def _names(data: Mapping[str, Any], places: Tuple[Where, ...], report: Report) -> Tuple[str, ...]:
    found: List[str] = []
    for where in places:
        value = at(data, where)
        if value is ABSENT or value is None:
            continue
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            report.add("warning", where, 'must be a list of names, as ["mcp__web__search"]: not used')
            continue
        found.extend(value)
    return tuple(dict.fromkeys(found))
