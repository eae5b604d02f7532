"""The options ``extensions`` and ``result_types`` of a client, in each of their spellings, as one table of extensions.

Specification: `basic/versioning`, "Extension Negotiation" (2026-07-28).
"""

from __future__ import annotations

import re
from collections.abc import Mapping as AbstractMapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, NamedTuple, Union

from mcpsync.client.held import Held
from mcpsync.connection.open_call import NO_RESULT_TYPES, ResultTypes
from mcpsync.errors import ConfigError

if TYPE_CHECKING:
    from mcpsync.types import Extension

    ExtensionsOption = Union[
        Mapping[str, Mapping[str, Any]], Extension, Iterable[Union[Extension, Mapping[str, Mapping[str, Any]]]]
    ]

__all__ = ["Extending", "extending"]

_LABEL = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = re.compile(r"%s(?:\.%s)*/(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?\Z" % (_LABEL, _LABEL))
_OF_THE_CORE = ("complete", "input_required")


class Extending(NamedTuple):
    """What a client's extensions come to.

    :ivar declared: settings by name, as they travel
    :ivar result_types: what they make of results of their own types
    """

    declared: Mapping[str, Mapping[str, Any]]
    result_types: ResultTypes


def extending(given: Any, result_types: Iterable[str], held: Held) -> Extending:
    """
    :param given: the option ``extensions``
    :param result_types: the option of that name
    :raises ConfigError: a name has no prefix, stands there twice, or a result type is taken already
    """
    if given is None and not result_types:
        return Extending({}, NO_RESULT_TYPES)
    declared: Dict[str, Mapping[str, Any]] = {}
    types: Dict[str, Any] = {}
    for extension in _listed(given):
        if not _NAME.match(extension.name):
            raise ConfigError("extensions: %.100r is no name of one: it has the form com.example/name" % extension.name)
        if extension.name in declared:
            raise ConfigError("extensions: %s stands there twice" % extension.name)
        declared[extension.name] = dict(extension.settings)
        for kind, function in extension.result_types.items():
            _claim(types, kind, None if function is None else held.handle(function))
    for kind in result_types:
        _claim(types, kind, None)
    return Extending(declared, types)


def _claim(types: Dict[str, Any], kind: str, function: Any) -> None:
    if kind in _OF_THE_CORE or kind in types:
        whose = "of the protocol itself" if kind in _OF_THE_CORE else "of another extension"
        raise ConfigError("extensions: the result type %.100r is one %s already" % (kind, whose))
    types[kind] = function


def _listed(given: Any) -> List[Extension]:
    from mcpsync.types import Extension

    if given is None:
        return []
    listed: List[Extension] = []
    for each in [given] if isinstance(given, (AbstractMapping, Extension)) else given:
        made = [each] if isinstance(each, Extension) else [Extension(*item) for item in each.items()]
        listed += made
    return listed


def is_extensions(value: Any) -> bool:
    """Whether it has the shape of the option ``extensions``."""
    from mcpsync.types import Extension

    if isinstance(value, (AbstractMapping, Extension)):
        value = [value]
    if not isinstance(value, (list, tuple, AbstractSet)):
        return False
    return all(_is_extension(each) if isinstance(each, Extension) else _is_settings(each) for each in value)


def _is_settings(value: Any) -> bool:
    return isinstance(value, AbstractMapping) and all(
        isinstance(name, str) and isinstance(settings, AbstractMapping) for name, settings in value.items()
    )


def _is_extension(value: Extension) -> bool:
    types = value.result_types
    return (
        _is_settings({value.name: value.settings})
        and isinstance(types, AbstractMapping)
        and all(isinstance(kind, str) and (each is None or callable(each)) for kind, each in types.items())
    )
