"""Words for what is wrong in a config file, and the list that they are collected in.

A message names kinds, keys and right forms, and never a value: values may be secrets.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping as AnyMapping
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from mcpsync.config.model import Diagnostic
from mcpsync.errors import ConfigError

__all__ = ["Report", "Where", "kind", "nearest", "show_path"]

#: A place in a file: the keys and indexes that lead to it.
Where = Tuple[Union[str, int], ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$@/-]+")


def show_path(where: Where) -> str:
    """``mcpServers.web.args[1]``; a key that would be unclear in this form is put in quotes."""
    text = ""
    for step in where:
        if isinstance(step, int):
            text += "[%d]" % step
        elif _PLAIN_KEY.fullmatch(step):
            text += "." + step if text else step
        else:
            text += "[%r]" % step
    return text


def kind(value: Any) -> str:
    """What a value is, in the words of config files."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, AnyMapping):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "a %s" % type(value).__name__


def _folded(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def nearest(key: str, known: Iterable[str], misnomers: Mapping[str, str]) -> Optional[str]:
    """The known key that is meant by an unknown one: by what it means, else by how it is spelled."""
    if key in misnomers:
        return misnomers[key]
    folded: Dict[str, str] = {}
    for candidate in known:
        folded.setdefault(_folded(candidate), candidate)
    close = difflib.get_close_matches(_folded(key), folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


class Report:
    """The diagnostics of one file, in the order in which they are found.

    :param line: where a place stands in it
    """

    def __init__(self, file: Optional[str], line: Callable[[Where], Optional[int]] = lambda where: None) -> None:
        self.file = file
        self.line = line
        self.diagnostics: List[Diagnostic] = []

    def add(
        self,
        severity: str,
        where: Where,
        message: str,
        *,
        nearest: Optional[str] = None,
        server: Optional[str] = None,
    ) -> Diagnostic:
        found = Diagnostic(self.file, show_path(where), message, nearest, severity, server, self.line(where))
        self.diagnostics.append(found)
        return found

    def failure(self, where: Where, message: str, nearest: Optional[str] = None) -> ConfigError:
        """An error that concerns the whole file."""
        return ConfigError(
            message, file=self.file, path=show_path(where) or None, nearest=nearest, line=self.line(where)
        )
