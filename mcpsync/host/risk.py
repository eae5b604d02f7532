"""How much harm a call of a tool may do, from how far its server is trusted and what it says of the tool.

Annotations are hints (specification: server/tools, "Tool annotations"): what an untrusted server says can raise the
level of its tool and never lower it.
"""

from __future__ import annotations

from typing import Optional, Tuple

from mcpsync.types import ToolAnnotations

__all__ = ["LEVELS", "needs_approval", "risk_of"]

#: The levels, from harmless to harmful.
LEVELS: Tuple[str, ...] = ("read_only", "write", "exec", "dangerous")
_NEEDS_APPROVAL = ("exec", "dangerous")


def risk_of(annotations: Optional[ToolAnnotations], trusted: bool) -> str:
    """The level of a tool: ``read_only``, ``write``, ``exec`` or ``dangerous``.

    Only a plain ``true`` counts as one: what is malformed says nothing. Of contradictory hints the worse one counts.

    :param trusted: whether the config trusts the server
    """
    read_only = annotations is not None and annotations.read_only_hint is True
    destructive = annotations is not None and annotations.destructive_hint is True
    if not trusted:
        return "dangerous" if destructive else "exec"
    if destructive:
        return "exec"
    return "read_only" if read_only else "write"


def needs_approval(risk: str) -> bool:
    """Whether somebody has to agree before a call of this level."""
    return risk in _NEEDS_APPROVAL
