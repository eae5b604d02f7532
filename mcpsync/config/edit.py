"""Servers added, changed and removed in the text of a config file: every other byte stays as it is.

An edit knows where things stand, and touches nothing else. The result is read again before it is written: it has to
say what the file said before, with the one change. Where it does not, which unusual YAML may bring about, nothing is
written. Values go into the file as they are given, so a variable stays a variable.
"""

from __future__ import annotations

import codecs
import copy
import os
import stat
import tempfile
from contextlib import suppress
from typing import Any, Callable, List, Mapping, NamedTuple, Optional

from mcpsync.config.detect import ABSENT, at, by_path, find_root, forced
from mcpsync.config.diagnose import Report, Where, nearest, show_path
from mcpsync.config.dialects import Dialect
from mcpsync.config.edit_block import block_lines, put_block, remove_block
from mcpsync.config.edit_flow import Change, Style, apply, put_flow, remove_flow, style_of
from mcpsync.config.edit_toml import put_toml, remove_toml
from mcpsync.config.programs import BY_NAME, PORTABLE
from mcpsync.config.read import Document, Source, parse, read_source
from mcpsync.config.spans import Node, find
from mcpsync.errors import ConfigError

__all__ = ["add_server", "change_server", "layout_of", "remove_server"]

_TRIES = 5
_BY_HAND = "cannot be edited without touching other parts of the file: change it by hand"
_NO_NAME = "a server's name is of letters, digits, '.', '-' and '_', at most 64"


def add_server(file: str, name: str, entry: Mapping[str, Any], *, dialect: Optional[str] = None) -> str:
    """Add a server to a config file, which is made if it is not there.

    :param name: of letters, digits, ``.``, ``-`` and ``_``
    :param entry: as the layout of the file has it; variables are written as they are
    :param dialect: the layout, where it is not to be recognised
    :returns: the file that was written: behind a symbolic link, what it leads to
    :raises ConfigError: it has a server of that name, or cannot be read, edited or written
    """
    if not name or len(name) > 64 or not all(char.isascii() and (char.isalnum() or char in "._-") for char in name):
        raise ConfigError(_NO_NAME, file=file, server=None)

    def edit(text: _Text) -> str:
        if name in text.names():
            raise ConfigError("has a server %r already: remove it first, or change it" % name, file=file)
        return text.added(name, entry)

    return _rewritten(file, dialect, edit, make=True)


def change_server(file: str, name: str, changes: Mapping[str, Any], *, dialect: Optional[str] = None) -> str:
    """Change keys of a server.

    :param changes: by key the new value; None takes the key out
    :returns: the file that was written
    :raises ConfigError: it has no such server, or cannot be read, edited or written
    """

    def edit(text: _Text) -> str:
        where = text.place(name)
        text.entry(where)
        for key, value in changes.items():
            if value is not None:
                text = text.after(text.put((*where, key), value))
            elif key in text.entry(where):
                text = text.after(text.removed((*where, key)))
        return text.source.text

    return _rewritten(file, dialect, edit)


def remove_server(file: str, name: str, *, dialect: Optional[str] = None) -> str:
    """Take a server out of a config file, with the comments inside its entry.

    :returns: the file that was written
    :raises ConfigError: it has no such server, or cannot be read, edited or written
    """

    def edit(text: _Text) -> str:
        text = text.after(text.removed(text.place(name)))
        while name in text.names():  # a list may have it more than once
            text = text.after(text.removed(text.place(name)))
        return text.source.text

    return _rewritten(file, dialect, edit)


class _Text:
    """A config file being edited."""

    def __init__(self, source: Source, dialect: Optional[Dialect]) -> None:
        self.source = source
        self.document: Document = parse(source)
        self.data: Any = self.document.data
        self.style: Style = style_of(source.text, source.format)
        self.given = dialect
        self.path: Where
        report = Report(source.path, self.document.line)
        if self.data is not None and not isinstance(self.data, Mapping):
            raise report.failure((), "must be a map with the key 'mcpServers'")
        known = dialect or by_path(source.path)
        try:
            root = find_root(self.data or {}, known, source.format == "yaml", report)
            self.dialect, self.path = root.dialect, root.path
        except ConfigError as error:
            if error.nearest is not None:  # the servers stand under a name that is spelled wrongly
                raise
            self.dialect = known or (BY_NAME["codex"] if source.format == "toml" else PORTABLE)
            self.path = self.dialect.roots[0]

    def after(self, text: str) -> _Text:
        """The same file with another text."""
        return _Text(self.source._replace(text=text), self.given)

    def servers(self) -> Any:
        found = at(self.data, self.path) if self.data is not None else ABSENT
        return None if found is ABSENT else found

    def names(self) -> List[str]:
        servers = self.servers()
        if isinstance(servers, list):
            return [str(each.get("name")) if isinstance(each, Mapping) else "" for each in servers]
        return [str(name) for name in servers] if isinstance(servers, Mapping) else []

    def place(self, name: str) -> Where:
        """Where a server stands; of several in a list, the last, which counts.

        :raises ConfigError: there is none of that name
        """
        names = self.names()
        if name not in names:
            raise ConfigError("has no server %r" % name, file=self.source.path, nearest=nearest(name, names, {}))
        last = len(names) - 1 - names[::-1].index(name)
        return (*self.path, last if isinstance(self.servers(), list) else name)

    def entry(self, where: Where) -> Mapping[str, Any]:
        """What stands at the place of a server.

        :raises ConfigError: no map does
        """
        found = self.data
        for step in where:
            found = found[step]
        if not isinstance(found, Mapping):
            raise ConfigError("must be a map", file=self.source.path, path=show_path(where))
        return found

    def added(self, name: str, entry: Mapping[str, Any]) -> str:
        servers = self.servers()
        if isinstance(servers, list) or (servers is None and self.dialect.list_root):
            named = {"name": name, **{key: value for key, value in entry.items() if key != "name"}}
            if servers is None:
                return self.put(self.path, [named])
            return self.put((*self.path, len(servers)), named)
        return self.put((*self.path, name), dict(entry))

    def put(self, where: Where, value: Any) -> str:
        """The text with this value at a place; maps on the way there are made."""
        expected = copy.deepcopy(self.data) if self.data is not None else {}
        try:
            _set(expected, where, value)
        except (TypeError, AttributeError):  # there is a text, say, where a map belongs
            raise self._failure(where) from None
        if self.source.format == "toml":
            changes: Optional[List[Change]] = put_toml(
                self.source.text, where, value, self.style, as_table=len(where) == len(self.path) + 1
            )
        else:
            changes = self._put_nodes(where, value)
        return self._checked(changes, expected, where)

    def _put_nodes(self, where: Where, value: Any) -> Optional[List[Change]]:
        text, style = self.source.text, self.style
        root = self.document.root
        if self.data is None:
            before = "" if not text or text.endswith(("\n", "\r")) else style.newline
            written = block_lines(_wrapped(where, value), style, "")
            return [Change(len(text), len(text), before + written + style.newline)]
        depth = len(where) - 1
        while depth > 0:
            around = find(root, where[:depth])
            if around is not None and around.value.kind in ("map", "list"):
                break
            depth -= 1
        member = find(root, where[:depth]) if depth else None
        node = root if member is None else member.value
        step = where[depth]
        inner = _wrapped(where[depth + 1 :], value)
        key = step if isinstance(step, str) else None
        if node.kind not in ("map", "list"):
            return None
        if node.flow or not node.members:
            return put_flow(text, node, key, inner, style)
        return put_block(text, node, key, inner, style)

    def removed(self, where: Where) -> str:
        """The text without a place."""
        expected = copy.deepcopy(self.data)
        _remove(expected, where)
        text = self.source.text
        if self.source.format == "toml":
            return self._checked(remove_toml(text, where), expected, where)
        around = find(self.document.root, where[:-1])
        node = self.document.root if around is None else around.value
        index = _index(node, where[-1])
        if index is None:
            changes = None
        elif node.flow:
            changes = remove_flow(text, node, index, self.style)
        else:
            changes = remove_block(text, node, index)
        return self._checked(changes, expected, where)

    def _checked(self, changes: Optional[List[Change]], expected: Any, where: Where) -> str:
        """The new text, if it says what it should.

        :raises ConfigError: it does not
        """
        if changes is None:
            raise self._failure(where)
        text = apply(self.source.text, changes)
        try:
            same = _plain(parse(self.source._replace(text=text)).data) == _plain(expected)
        except (ConfigError, RecursionError):
            same = False
        if not same:
            raise self._failure(where)
        return text

    def _failure(self, where: Where) -> ConfigError:
        line = self.document.line(where[:-1] or where)
        return ConfigError(_BY_HAND, file=self.source.path, path=show_path(where), line=line)


def _wrapped(where: Where, value: Any) -> Any:
    for step in reversed(where):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _set(data: Any, where: Where, value: Any) -> None:
    for step, following in zip(where, where[1:]):
        if isinstance(data, dict) and data.get(step) is None:
            data[step] = {} if isinstance(following, str) else []
        data = data[step]
    if isinstance(data, list) and where[-1] == len(data):
        data.append(value)
    else:
        data[where[-1]] = value


def _remove(data: Any, where: Where) -> None:
    for step in where[:-1]:
        data = data[step]
    del data[where[-1]]


def _index(node: Node, step: Any) -> Optional[int]:
    if isinstance(step, int):
        return step if node.kind == "list" and step < len(node.members) else None
    found = [index for index, each in enumerate(node.members) if each.key == step]
    return found[-1] if found and node.kind == "map" else None


def _plain(value: Any) -> Any:
    """For comparison: where a map or a list has lost its last entry, there may be an empty place, or none."""
    if isinstance(value, Mapping):
        entries = ((str(key), _plain(each)) for key, each in value.items())
        return {key: each for key, each in entries if each is not None} or None
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value] or None
    return None if value is None else (type(value), value)


class _Seen(NamedTuple):
    source: Source
    exists: bool


def layout_of(file: str, dialect: Optional[str] = None) -> Dialect:
    """The layout that a server added to this file would have.

    :raises ConfigError: the file cannot be read, or there is no such layout
    """
    path = os.path.realpath(os.path.expanduser(file))
    return _Text(_seen(path, True).source, None if dialect is None else forced(dialect)).dialect


def _rewritten(file: str, dialect: Optional[str], edit: Callable[[_Text], str], *, make: bool = False) -> str:
    """Edit a file. Whoever else writes it at the same time is not overwritten: the edit is made again on theirs."""
    layout = None if dialect is None else forced(dialect)
    path = os.path.realpath(os.path.expanduser(file))
    for _ in range(_TRIES):
        seen = _seen(path, make)
        try:
            text = edit(_Text(seen.source, layout))
        except RecursionError:
            raise ConfigError("is nested too deeply to be edited: change it by hand", file=path) from None
        raw = _encoded(text, seen.source)
        if _replaced(path, seen, raw):
            return path
    raise ConfigError("is written by others all the time: try again", file=path)


def _seen(path: str, make: bool) -> _Seen:
    if make and not os.path.exists(path):
        suffix = os.path.splitext(path)[1].lower()
        form = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}.get(suffix, "json")
        return _Seen(Source(path, b"", "{}\n" if form == "json" else "", "utf-8", form), False)
    return _Seen(read_source(path), True)


def _encoded(text: str, source: Source) -> bytes:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(source.encoding, b"")
    try:
        return mark + text.encode(source.encoding)
    except UnicodeEncodeError:
        raise ConfigError("a value is no valid text", file=source.path) from None


def _replaced(path: str, seen: _Seen, raw: bytes) -> bool:
    """Write the file whole, or not at all; False: it is another one than was read.

    :raises ConfigError: it cannot be written
    """
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".%s-" % os.path.basename(path))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            if seen.exists:
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            if not _unchanged(path, seen):
                return False
            os.replace(temporary, path)
            return True
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise ConfigError("cannot be written: %s" % error.strerror, file=path) from error


def _unchanged(path: str, seen: _Seen) -> bool:
    try:
        with open(path, "rb") as file:
            return seen.exists and file.read() == seen.source.raw
    except FileNotFoundError:
        return not seen.exists
