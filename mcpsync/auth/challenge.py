"""What a ``WWW-Authenticate`` header says.

Lenient: real servers leave out commas and quotes. What cannot be read is passed over, since a challenge only makes
discovery quicker and more precise; whom to trust is decided by what the metadata proves.

Specification: RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

__all__ = ["BearerChallenge", "bearer_challenge", "parse_challenges"]

_LONGEST = 16 * 1024
_GAP = re.compile(r"[\s,]*")
_SPACE = re.compile(r"\s*")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(r"(%s)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)(?:\"|$)|([^\s,\"]*))" % _TOKEN)
_SCHEME = re.compile(r"(%s)(?=[\s,]|$)" % _TOKEN)
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$))")
_ESCAPED = re.compile(r"\\(.)")
_UNREADABLE = re.compile(r"[^\s,]+")
_OURS = ("bearer", "dpop")


class BearerChallenge(NamedTuple):
    """What a server that wants a token says about it.

    :ivar scheme: ``bearer`` or ``dpop``; empty: the server does not ask for a token
    :ivar resource_metadata: URL of the protected resource's metadata
    :ivar scope: None: not said
    :ivar error: as ``invalid_token`` or ``insufficient_scope``
    """

    scheme: str = ""
    resource_metadata: Optional[str] = None
    scope: Optional[Tuple[str, ...]] = None
    error: Optional[str] = None
    error_description: Optional[str] = None


def bearer_challenge(header: Optional[str]) -> BearerChallenge:
    """The challenge that asks for a token, the one that names metadata if there are several.

    :param header: the value of ``WWW-Authenticate``; several joined by commas; None: there is none
    """
    ours = [(scheme, values) for scheme, values in parse_challenges(header or "") if scheme in _OURS]
    if not ours:
        return BearerChallenge()
    scheme, values = next((pair for pair in ours if "resource_metadata" in pair[1]), ours[0])
    scope = values.get("scope")
    return BearerChallenge(
        scheme=scheme,
        resource_metadata=values.get("resource_metadata") or None,
        scope=None if scope is None else tuple(dict.fromkeys(scope.split())),
        error=values.get("error"),
        error_description=values.get("error_description"),
    )


def parse_challenges(header: str) -> List[Tuple[str, Dict[str, str]]]:
    """The challenges of a header in their order: scheme in lower case, parameters by name in lower case."""
    header = header[:_LONGEST]
    found: List[Tuple[str, Dict[str, str]]] = []
    position = _end(_GAP.match(header, 0))
    while position < len(header):
        parameter = _PARAMETER.match(header, position)
        scheme = None if parameter else _SCHEME.match(header, position)
        if parameter is not None:
            if found:
                quoted, plain = parameter.group(2), parameter.group(3)
                value = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
                found[-1][1].setdefault(parameter.group(1).lower(), value)
            position = parameter.end()
        elif scheme is not None:
            found.append((scheme.group(1).lower(), {}))
            position = _end(_SPACE.match(header, scheme.end()))
            if not _PARAMETER.match(header, position):
                position = _end(_TOKEN68.match(header, position)) or position
        else:
            position = _end(_UNREADABLE.match(header, position))
        position = _end(_GAP.match(header, position))
    return found


def _end(match: Optional[re.Match[str]]) -> int:
    return 0 if match is None else match.end()
