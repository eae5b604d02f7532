"""What whoever looks after several connections, or keeps what they brought, is told apart from the user's callbacks."""

from __future__ import annotations

from typing import Any, Dict, Protocol

__all__ = ["KEEPS_NOTHING", "Keeper", "Observer"]


class Observer(Protocol):
    """Told at once, on the thread that noticed, which may be a reader or a watchdog: so it has to be quick, to make
    no blocking call and to raise nothing. No lock is held. Two reports may overtake each other, so they carry
    nothing: whoever is told looks for itself."""

    def state_changed(self) -> None:
        """The connection has another state."""

    def tools_changed(self) -> None:
        """The server may list other tools than before; told some time after the last of a burst."""


class Keeper(Protocol):
    """Keeps results; told at once, on the thread that noticed, under the connection's lock at times. So it is quick."""

    def notified(self, method: str, params: Dict[str, Any]) -> None:
        """A notification came in; before whatever comes in after it on its stream is looked at."""

    def missed(self) -> None:
        """Notifications may have been missed: a stream or a link ended, or takes the place of another."""

    def after_fork(self) -> None:
        """In a forked child."""


class _KeepsNothing:
    def notified(self, method: str, params: Dict[str, Any]) -> None:
        pass

    def missed(self) -> None:
        pass

    def after_fork(self) -> None:
        pass


KEEPS_NOTHING: Keeper = _KeepsNothing()
