"""User code, held so that it does not keep its own client alive.

The threads of a connection lead to everything that the connection holds. A handler commonly leads back to the client
(a method of the object that owns it), so a handler that the connection held would keep a client open which nobody else
remembers. Hence the client alone holds the user's functions; the connection has handles of them, which do nothing once
the client is gone.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

from mcpsync.errors import ClientClosed

__all__ = ["Held"]


class Held:
    """The functions of one client."""

    def __init__(self) -> None:
        self.functions: weakref.WeakKeyDictionary[Handle, Callable[..., Any]] = weakref.WeakKeyDictionary()

    def handle(self, function: Callable[..., Any]) -> Handle:
        """A handle that calls the function as long as these are held; later it does nothing and gives None."""
        handle = Handle(self)
        self.functions[handle] = function
        return handle

    def optional(self, function: Optional[Callable[..., Any]]) -> Optional[Handle]:
        """The same, if there is a function."""
        return None if function is None else self.handle(function)

    def loop(self, function: Callable[..., Any]) -> LoopHandle:
        """A handle of a dispatcher; later it refuses."""
        handle = LoopHandle(self)
        self.functions[handle] = function
        return handle


class Handle:
    """Calls a function that a client holds."""

    def __init__(self, held: Held) -> None:
        self._held = weakref.ref(held)

    def __call__(self, *arguments: Any) -> Any:
        function = self._function()
        return None if function is None else function(*arguments)

    def _function(self) -> Optional[Callable[..., Any]]:
        held = self._held()
        return None if held is None else held.functions.get(self)


class LoopHandle(Handle):
    """Calls a dispatcher that a client holds."""

    @property
    def thread(self) -> Any:
        """Ident of the thread that the dispatcher names as its own, if it does."""
        return getattr(self._function(), "thread", None)

    def __call__(self, *arguments: Any) -> Any:
        if self._function() is None:
            raise ClientClosed("the client of this dispatcher is gone")
        return super().__call__(*arguments)
