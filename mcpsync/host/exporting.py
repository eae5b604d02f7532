"""The definitions of tools for a model's API, made once per server and copied for whoever asks.

A program may change what it gets (a cache mark on the last tool, say), so each gets its own; ``marshal`` copies JSON
values ten times as fast as ``copy.deepcopy``.
"""

from __future__ import annotations

import copy
import gc
import marshal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Tuple

from mcpsync.host.catalog import Shelf, Table

if TYPE_CHECKING:
    from mcpsync.export import Format

__all__ = ["export_table"]


class _Definitions:
    """Those of one server's tools, in one format.

    :ivar names: of the tools, in the same order
    """

    def __init__(self, shelf: Shelf, form: Format) -> None:
        made: List[Any] = []
        for name, key in shelf.names.items():
            tool = shelf.definitions[key.tool]
            made.append(form.tool(name, tool.description, tool.input_schema))
        self.names = [name for name, _ in shelf.names.items()]
        try:
            self._packed: bytes = marshal.dumps(made)
            self._plain: List[Any] = []
        except ValueError:  # nested more deeply than it goes
            self._packed, self._plain = b"", made

    def copies(self) -> List[Dict[str, Any]]:
        """The definitions, to be changed at will."""
        made: List[Dict[str, Any]] = marshal.loads(self._packed) if self._packed else copy.deepcopy(self._plain)
        return made


def export_table(
    table: Table, ready: Mapping[str, bool], form: Format, wanted: Callable[[str], bool]
) -> List[Dict[str, Any]]:
    """The definitions of all tools of the servers that are ready, in the table's order.

    :param ready: by server
    :param wanted: whether a tool is to be shown, by the name that the model sees
    """
    exported: List[Dict[str, Any]] = []
    key: Tuple[str, str] = ("export", form.name)
    with _no_collections():
        for shelf, left_out in table.shelves():
            if not ready.get(shelf.server) or not len(shelf.names):
                continue
            # two threads may both make them: the one that is kept is as good as the other
            definitions = shelf.derived.get(key) or shelf.derived.setdefault(key, _Definitions(shelf, form))
            exported += [
                definition
                for name, definition in zip(definitions.names, definitions.copies())
                if name not in left_out and wanted(name)
            ]
    return exported


@contextmanager
def _no_collections() -> Iterator[None]:
    """While a hundred thousand objects are made of which none is garbage, looking for some takes twice as long as all
    the rest. Of several threads at once the first to come turns it off, and that one turns it on again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
