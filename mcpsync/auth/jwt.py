"""JSON Web Tokens, as far as no key is needed for them.

Specification: RFC 7515, 2 and 7.1; RFC 7519, 4.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Dict, Optional, Tuple

__all__ = ["audiences_of", "base64url", "claims_of"]


def base64url(data: bytes) -> str:
    """Without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims_of(token: str) -> Optional[Dict[str, Any]]:
    """What a token says, unverified; None: it is none, or one that only others can read."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def audiences_of(claims: Dict[str, Any]) -> Tuple[str, ...]:
    """Whom it is for."""
    said = claims.get("aud")
    return tuple(each for each in (said if isinstance(said, list) else [said]) if isinstance(each, str))
