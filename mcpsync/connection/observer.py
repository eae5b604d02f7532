"""What whoever looks after several connections is told, apart from the callbacks of the user."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Observer"]


class Observer(Protocol):
    """Told at once, on the thread that noticed, which may be a reader or a watchdog: so it has to be quick, to make
    no blocking call and to raise nothing. No lock is held. Two reports may overtake each other, so they carry
    nothing: whoever is told looks for itself."""

    def state_changed(self) -> None:
        """The connection has another state."""

    def tools_changed(self) -> None:
        """The server may list other tools than before; told some time after the last of a burst."""
