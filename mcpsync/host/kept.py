"""Long texts: the model gets the beginning, and the whole is kept for a while, to be read on from."""

from __future__ import annotations

from collections import OrderedDict
from threading import RLock
from typing import Optional

__all__ = ["Kept"]

_MOST_CHARACTERS = 16 * 1024 * 1024
_MOST_TEXTS = 64


class Kept:
    """The latest of the long texts; the oldest go when there is no more room.

    :param limit: characters that a model gets at a time
    :param reader: the tool with which it reads on; None: it has none
    """

    def __init__(self, limit: int, reader: Optional[str] = None) -> None:
        self.limit = limit
        self._reader = reader
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._characters = 0
        self._count = 0
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first."""
        self._lock = RLock()  # guards the texts

    def fit(self, text: str) -> str:
        """The text itself, or its beginning with a note on how to get the rest."""
        if len(text) <= self.limit:
            return text
        return self._piece(text, self._keep(text), 0, self.limit)

    def get(self, name: str) -> Optional[str]:
        """The whole of a kept text; None if it is not there any more."""
        with self._lock:
            return self._texts.get(name)

    def read(self, name: str, offset: int, limit: Optional[int] = None) -> Optional[str]:
        """A piece of a kept text, with a note if there is more; None if it is not there any more.

        :param offset: of its first character, from 0
        :param limit: characters; at most, and by default, those that a model gets at a time
        """
        text = self.get(name)
        if text is None:
            return None
        return self._piece(text, name, max(0, offset), min(limit or self.limit, self.limit))

    def _keep(self, text: str) -> str:
        with self._lock:
            self._count += 1
            name = "r%d" % self._count
            self._texts[name] = text
            self._characters += len(text)
            while len(self._texts) > 1 and (len(self._texts) > _MOST_TEXTS or self._characters > _MOST_CHARACTERS):
                self._characters -= len(self._texts.popitem(last=False)[1])
        return name

    def _piece(self, text: str, name: str, offset: int, limit: int) -> str:
        end = offset + limit
        if end >= len(text):
            return text[offset:]
        how = "" if self._reader is None else ": call %s with id %r and offset %d" % (self._reader, name, end)
        return "%s\n[cut here: %d of %d characters left out, kept as %s%s]" % (
            text[offset:end],
            len(text) - end,
            len(text),
            name,
            how,
        )
