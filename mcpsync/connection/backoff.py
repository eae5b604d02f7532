"""When to try again: the policy, apart from the code that waits."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

__all__ = ["Backoff"]


class Backoff(NamedTuple):
    """A series of attempts to connect again.

    :ivar delays: seconds before each attempt
    """

    delays: Tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)

    def delay(self, failures: int) -> Optional[float]:
        """Seconds before the next attempt after so many failed ones; None: give up."""
        return self.delays[failures] if failures < len(self.delays) else None
