"""What servers want to find in the next proof of possession.

Specification: RFC 9449, 8 and 9.
"""

from __future__ import annotations

import re
from typing import Dict, Mapping, Optional

from mcpsync.auth.challenge import parse_challenges
from mcpsync.auth.urls import Url

__all__ = ["WANTED", "Nonces", "wants_nonce"]

WANTED = "use_dpop_nonce"
_NONCE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,512}\Z")  # RFC 9449, 8.1
_HEADER = "dpop-nonce"
_MOST_PLACES = 64


class Nonces:
    """The last nonce of each origin. Any number of threads may use it."""

    def __init__(self) -> None:
        self._by_origin: Dict[str, str] = {}  # each access is one step of the interpreter

    def __repr__(self) -> str:
        return "<Nonces of %d origins>" % len(self._by_origin)

    def of(self, origin: str) -> Optional[str]:
        """The last one of this origin."""
        return self._by_origin.get(origin)

    def observed(self, url: str, headers: Mapping[str, str]) -> bool:
        """The headers of an answer. True: they hold a nonce that can be used."""
        nonce = headers.get(_HEADER)
        if nonce is None or not _NONCE.match(nonce):
            return False
        origin = Url.parse(url, "a request's URL").origin
        if len(self._by_origin) < _MOST_PLACES or origin in self._by_origin:
            self._by_origin[origin] = nonce
        return True


def wants_nonce(headers: Mapping[str, str]) -> bool:
    """Whether a refusal is about a nonce, and nothing else."""
    challenges = parse_challenges(headers.get("www-authenticate") or "")
    return any(scheme == "dpop" and values.get("error") == WANTED for scheme, values in challenges)
