"""From a file to plain data: which format, which encoding, where a syntax error stands, which keys stand twice."""

from __future__ import annotations

import codecs
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from mcpsync.config.diagnose import Where
from mcpsync.errors import ConfigError

__all__ = ["Document", "read_file"]

_JSON_SUFFIXES = (".json", ".jsonc")
_YAML_SUFFIXES = (".yaml", ".yml")
_MOST_BYTES = 64 * 1024 * 1024  # a device, or the wrong file, must not fill the memory


class Document(NamedTuple):
    """The data of a file.

    :ivar data: maps, lists, strings, numbers, booleans, None
    :ivar repeated: the places of keys that stand more than once in their map; the last one counts
    """

    data: Any
    repeated: Tuple[Where, ...]


def read_file(path: str) -> Document:
    """Read a JSON or YAML file; the suffix says which, else the first character.

    :raises ConfigError: it cannot be read, or its syntax is wrong (with line and column)
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".toml":
        raise ConfigError("TOML files are not read: write the servers as JSON or YAML", file=path)
    text = _text(path)
    is_yaml = suffix in _YAML_SUFFIXES or (suffix not in _JSON_SUFFIXES and not text.lstrip().startswith(("{", "[")))
    try:
        if not is_yaml:
            return _parse_json(text, path)
        from mcpsync.config.yaml_reader import parse_yaml

        return parse_yaml(text, path)
    except RecursionError:
        raise ConfigError("nested too deeply to be a config file", file=path) from None


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError("there is no such file", file=path) from None
    except IsADirectoryError:
        raise ConfigError("is a folder, not a config file", file=path) from None
    except OSError as error:
        raise ConfigError("cannot be read: %s" % error.strerror, file=path) from error
    if len(raw) > _MOST_BYTES:
        raise ConfigError("is larger than %d MB, which no config file is" % (_MOST_BYTES >> 20), file=path)
    utf16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return raw.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError("is no UTF-8 text: save it as UTF-8", file=path, path="line %d" % line) from None


class _JsonMap(Dict[str, Any]):
    """A map that remembers which of its keys stood there more than once."""

    def __init__(self, pairs: List[Tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: Optional[Dict[str, None]] = None
        if len(pairs) > len(self):
            seen = set()
            self.repeated = {}
            for key, _ in pairs:
                if key in seen:
                    self.repeated[key] = None
                seen.add(key)


def _parse_json(text: str, path: str) -> Document:
    try:
        data = json.loads(text, object_pairs_hook=_JsonMap)
    except json.JSONDecodeError as error:
        raise ConfigError(
            "no valid JSON: %s" % (error.msg[:1].lower() + error.msg[1:]),
            file=path,
            path="line %d, column %d" % (error.lineno, error.colno),
        ) from None
    except ValueError:  # what is left: an integer of more digits than the interpreter converts
        raise ConfigError("no valid JSON: a number has too many digits", file=path) from None
    return Document(data, tuple(_repeated(data)))


def _repeated(data: Any) -> List[Where]:
    found: List[Where] = []
    waiting: List[Tuple[Where, Any]] = [((), data)]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, _JsonMap):
            found.extend((*where, key) for key in value.repeated or ())
            waiting.extend(((*where, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*where, index), inner) for index, inner in enumerate(value))
    return found
