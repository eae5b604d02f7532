"""From a file to plain data: which format, which encoding, where a syntax error stands, which keys stand twice."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from mcpsync.config.diagnose import Where
from mcpsync.config.jsonc import json_nodes, strict_json
from mcpsync.config.spans import Node, line_at, nearest_start
from mcpsync.errors import ConfigError

__all__ = ["Document", "Source", "parse", "read_file", "read_source"]

_JSON_SUFFIXES = (".json", ".jsonc")
_YAML_SUFFIXES = (".yaml", ".yml")
_MOST_BYTES = 64 * 1024 * 1024  # a device, or the wrong file, must not fill the memory


class Source(NamedTuple):
    """A file as it is.

    :ivar path: as it was given
    :ivar raw: its bytes
    :ivar text: these, decoded, without a byte order mark
    :ivar encoding: how text becomes bytes again
    :ivar format: ``json``, ``yaml`` or ``toml``
    """

    path: str
    raw: bytes
    text: str
    encoding: str
    format: str


@dataclass
class Document:
    """The data of a file.

    :ivar data: maps, lists, strings, numbers, booleans, None
    :ivar repeated: the places of keys that stand more than once in their map; the last one counts
    :ivar nodes: gives the places of all parts; None for a mapping in memory
    :ivar digest: SHA-256 of the bytes, in hex
    """

    data: Any
    repeated: Tuple[Where, ...] = ()
    text: str = ""
    nodes: Optional[Callable[[], Node]] = None
    lines: Optional[Callable[[Where], int]] = None
    digest: str = ""
    _root: Optional[Node] = field(default=None, repr=False)

    @property
    def root(self) -> Node:
        """The tree of its parts, built when it is asked for."""
        assert self.nodes is not None
        if self._root is None:
            self._root = self.nodes()
        return self._root

    def line(self, where: Where) -> Optional[int]:
        """The line, from 1, where a place or what is around it begins."""
        if self.lines is not None:
            return self.lines(where)
        return None if self.nodes is None else line_at(self.text, nearest_start(self.root, where))


def read_file(path: str) -> Document:
    """Read a JSON, YAML or TOML file; the suffix says which, else the first character.

    :raises ConfigError: it cannot be read, or its syntax is wrong (with line and column)
    """
    return parse(read_source(path))


def parse(source: Source) -> Document:
    """The data of a text.

    :raises ConfigError: its syntax is wrong
    """
    try:
        if source.format == "json":
            document = _parse_json(source.text, source.path)
        elif source.format == "toml":
            from mcpsync.config.toml_reader import parse_toml

            document = parse_toml(source.text, source.path)
        else:
            from mcpsync.config.yaml_reader import parse_yaml

            document = parse_yaml(source.text, source.path)
    except RecursionError:
        raise ConfigError("nested too deeply to be a config file", file=source.path) from None
    document.digest = hashlib.sha256(source.raw).hexdigest()
    return document


def read_source(path: str) -> Source:
    """Read and decode a file.

    :raises ConfigError: it cannot be read, or is no text
    """
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
    return _decoded(path, raw)


def _decoded(path: str, raw: bytes) -> Source:
    encoding = "utf-8"
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if raw.startswith(mark):
            encoding = name
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError("is no UTF-8 text: save it as UTF-8", file=path, path="line %d" % line) from None
    text = text.lstrip("\ufeff") if encoding.startswith("utf-16") else text
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".toml":
        form = "toml"
    elif suffix in _YAML_SUFFIXES or (
        suffix not in _JSON_SUFFIXES and not text.lstrip().startswith(("{", "[", "//", "/*"))
    ):
        form = "yaml"
    else:
        form = "json"
    return Source(path, raw, text, encoding, form)


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
    strict = text
    try:
        try:
            data = json.loads(text, object_pairs_hook=_JsonMap)
        except json.JSONDecodeError:
            strict = strict_json(text)
            data = json.loads(strict, object_pairs_hook=_JsonMap)
    except json.JSONDecodeError as error:
        raise ConfigError(
            "no valid JSON: %s" % (error.msg[:1].lower() + error.msg[1:]),
            file=path,
            path="line %d, column %d" % (error.lineno, error.colno),
        ) from None
    except ValueError:  # what is left: an integer of more digits than the interpreter converts
        raise ConfigError("no valid JSON: a number has too many digits", file=path) from None
    return Document(data, tuple(_repeated(data)), text, lambda: json_nodes(strict))


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
