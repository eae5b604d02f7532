"""Regular expressions of ECMA-262, as JSON Schema has them, read into a small tree.

What is read is what schemas use: characters, classes, groups, alternatives, quantifiers, anchors, looking around,
references back. The rest is refused by name.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Callable, List, NamedTuple, Optional, Tuple, Union

from mcpsync.schema.work import Unusable

__all__ = ["Alternatives", "Back", "Characters", "Look", "Node", "Place", "Repeat", "Sequence", "parse"]

MOST_TEXT = 2_000
MOST_NESTED = 20


class Characters(NamedTuple):
    """One character out of a set.

    :ivar source: the set as Python writes it; None where it has no way to
    :ivar test: whether a character is in it
    :ivar only: the character, if there is no other in it
    """

    source: Optional[str]
    test: Callable[[str], object]
    only: Optional[str] = None


class Place(NamedTuple):
    """A place between characters: ``^``, ``$``, ``b`` for the edge of a word, ``B`` for anywhere else."""

    kind: str


class Sequence(NamedTuple):
    """One after the other."""

    parts: Tuple[Node, ...]


class Alternatives(NamedTuple):
    """One of several."""

    parts: Tuple[Node, ...]


class Repeat(NamedTuple):
    """So many times; ``most`` is None for any number."""

    part: Node
    least: int
    most: Optional[int]
    lazy: bool


class Look(NamedTuple):
    """What has to stand, or must not stand, ahead or behind; ``mark`` is the Python syntax."""

    part: Node
    mark: str


class Back(NamedTuple):
    """The text of an earlier group again."""

    group: str


class Group(NamedTuple):
    """Something whose text can be referred to."""

    part: Node
    name: Optional[str]


Node = Union[Characters, Place, Sequence, Alternatives, Repeat, Look, Back, Group]

_SPACES = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ESCAPED_SETS = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[A-Za-z0-9_]",
    "W": "[^A-Za-z0-9_]",
    "s": "[%s]" % _SPACES,
    "S": "[^%s]" % _SPACES,
}
_CONTROL = {"t": "\t", "n": "\n", "v": "\x0b", "f": "\x0c", "r": "\r", "0": "\0"}
_ANY = r"[^\n\r\u2028\u2029]"
_QUANTIFIED = re.compile(r"\{(\d{1,6})(,(\d{1,6})?)?\}", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}", re.ASCII)
_CATEGORY = re.compile(r"\{(?:(?:General_Category|gc)=)?([A-Z][a-z]?|Letter|Number|Punctuation|Alphabetic)\}", re.ASCII)
_CATEGORIES = {"Letter": "L", "Number": "N", "Punctuation": "P", "Alphabetic": "L"}
_LOOKING = ("(?=", "(?!", "(?<=", "(?<!")
_HEX = re.compile(r"[0-9A-Fa-f]+", re.ASCII)


def parse(text: str) -> Node:
    """The tree of a regular expression.

    :raises Unusable: it is none, or uses what is not read
    """
    if len(text) > MOST_TEXT:
        raise Unusable("a regular expression of more than %d characters" % MOST_TEXT)
    reader = _Reader(text)
    node = reader.alternatives(0)
    if reader.at < len(text):
        raise reader.refusal("a ) without its (")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups: List[Optional[str]] = []

    def refusal(self, what: str) -> Unusable:
        return Unusable("the regular expression %.60r: %s" % (self.text, what))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, literal: str) -> bool:
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def alternatives(self, depth: int) -> Node:
        if depth > MOST_NESTED:
            raise self.refusal("groups nested more than %d deep" % MOST_NESTED)
        branches = [self._sequence(depth)]
        while self.take("|"):
            branches.append(self._sequence(depth))
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _sequence(self, depth: int) -> Node:
        parts: List[Node] = []
        while self.at < len(self.text) and self.peek() not in "|)":
            atom = self._atom(depth)
            parts.append(self._quantified(atom))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantified(self, atom: Node) -> Node:
        least, most = 0, None
        if self.take("*"):
            pass
        elif self.take("+"):
            least = 1
        elif self.take("?"):
            most = 1
        else:
            match = _QUANTIFIED.match(self.text, self.at)
            if match is None:
                return atom
            self.at = match.end()
            least = int(match[1])
            most = least if match[2] is None else None if match[3] is None else int(match[3])
            if most is not None and most < least:
                raise self.refusal("a quantifier whose bounds are the wrong way round")
        lazy = self.take("?")
        if self.peek() and self.peek() in "*+?":
            raise self.refusal("two quantifiers in a row")
        if isinstance(atom, (Place, Look)):
            raise self.refusal("a quantifier behind something that has no length")
        return Repeat(atom, least, most, lazy)

    def _atom(self, depth: int) -> Node:
        char = self.peek()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._set()
        self.at += 1
        if char in "^$":
            return Place(char)
        if char == ".":
            return _characters(_ANY)
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise self.refusal("a quantifier with nothing before it")
        return _one(char)

    def _group(self, depth: int) -> Node:
        for mark in _LOOKING:
            if self.take(mark):
                part: Node = Look(self._closed(depth), mark)
                return part
        if self.take("(?:"):
            inner = self._closed(depth)
            return Sequence((inner,)) if isinstance(inner, (Place, Look)) else inner  # can be repeated now
        name: Optional[str] = None
        if self.take("(?<") or self.take("(?P<"):
            match = _NAME.match(self.text, self.at)
            if match is None or not self.text.startswith(">", match.end()) or match[0] in self.groups:
                raise self.refusal("a group with a name that is none, or is taken")
            name = match[0]
            self.at = match.end() + 1
        elif self.text.startswith("(?", self.at):
            raise self.refusal("%r is not supported" % self.text[self.at : self.at + 4])
        else:
            self.at += 1
        self.groups.append(name)
        return Group(self._closed(depth), name)

    def _closed(self, depth: int) -> Node:
        node = self.alternatives(depth + 1)
        if not self.take(")"):
            raise self.refusal("a ( without its )")
        return node

    def _escape(self) -> Node:
        char = self.peek()
        self.at += 1
        if char in ("b", "B"):
            return Place(char)
        if char in _ESCAPED_SETS:
            return _characters(_ESCAPED_SETS[char])
        if char and char in "pP":
            return self._category(char == "P")
        if char and char in "123456789":
            if int(char) > len(self.groups) or self.peek().isdigit():
                raise self.refusal("a reference to a group that is not there")
            return Back("(?:\\%s)" % char)
        if char == "k":
            match = re.compile(r"<(%s)>" % _NAME.pattern).match(self.text, self.at)
            if match is None or match[1] not in self.groups:
                raise self.refusal("a reference to a group that is not there")
            self.at = match.end()
            return Back("(?P=%s)" % match[1])
        return _one(self._escaped(char))

    def _escaped(self, char: str) -> str:
        """The one character that an escape stands for."""
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            return self._coded(2)
        if char == "u":
            if self.take("{"):
                match = _HEX.match(self.text, self.at)
                if match is None or len(match[0]) > 6 or not self.text.startswith("}", match.end()):
                    raise self.refusal("a \\u{...} that is no character")
                self.at = match.end() + 1
                return self._character(match[0])
            high = self._coded(4)
            if "\ud800" <= high <= "\udbff" and self.text.startswith("\\u", self.at):
                self.at += 2
                low = self._coded(4)
                return (high + low).encode("utf-16", "surrogatepass").decode("utf-16", "replace")[0]
            return high
        if char == "c" and self.peek().isascii() and self.peek().isalpha():
            self.at += 1
            return chr(ord(self.text[self.at - 1]) % 32)
        if not char or (char.isascii() and char.isalnum()):
            raise self.refusal("\\%s is not supported" % char)
        return char

    def _coded(self, length: int) -> str:
        digits = self.text[self.at : self.at + length]
        if len(digits) != length or _HEX.fullmatch(digits) is None:
            raise self.refusal("an escape that is no character")
        self.at += length
        return self._character(digits)

    def _character(self, digits: str) -> str:
        if int(digits, 16) > 0x10FFFF:
            raise self.refusal("an escape that is no character")
        return chr(int(digits, 16))

    def _category(self, negated: bool) -> Characters:
        match = _CATEGORY.match(self.text, self.at)
        if match is None:
            raise self.refusal("of \\p{...} only general categories are supported")
        self.at = match.end()
        prefix = _CATEGORIES.get(match[1], match[1])
        return Characters(None, lambda char: unicodedata.category(char).startswith(prefix) is not negated)

    def _set(self) -> Characters:
        self.at += 1
        negated = self.take("^")
        pieces: List[str] = []
        tests: List[Callable[[str], object]] = []
        while not self.take("]"):
            if self.at >= len(self.text):
                raise self.refusal("a [ without its ]")
            first = self._member(tests)
            if first is None:
                continue
            if len(first) == 1 and self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._member(tests)
                if last is None or len(last) != 1 or last < first:
                    raise self.refusal("a range of characters that is none")
                pieces.append("%s-%s" % (_literal(first), _literal(last)))
            else:
                pieces.append(_literal(first) if len(first) == 1 else first)
        inside = "".join(pieces)
        if not tests and not inside:
            return _characters(r"[^\s\S]" if not negated else r"[\s\S]")
        if not tests:
            return _characters("[%s%s]" % ("^" if negated else "", inside))
        if inside:
            tests.append(re.compile("[%s]" % inside).match)
        return Characters(None, lambda char: any(test(char) for test in tests) is not negated)

    def _member(self, tests: List[Callable[[str], object]]) -> Optional[str]:
        """One member of a set: a character, the inside of a set, or None for one that is a test of its own."""
        char = self.text[self.at]
        self.at += 1
        if char != "\\":
            return char
        char = self.peek()
        self.at += 1
        if char == "b":
            return "\b"
        if char in ("d", "w", "s"):
            return _ESCAPED_SETS[char][1:-1]
        if char in ("D", "W", "S"):
            tests.append(re.compile(_ESCAPED_SETS[char]).match)
            return None
        if char and char in "pP":
            tests.append(self._category(char == "P").test)
            return None
        return self._escaped(char)


def _literal(char: str) -> str:
    """A character inside a set of Python's."""
    if char.isalnum():
        return char
    code = ord(char)
    return "\\x%02x" % code if code < 256 else "\\u%04x" % code if code < 65536 else "\\U%08x" % code


def _one(char: str) -> Characters:
    source = "[%s]" % _literal(char)
    return Characters(source, re.compile(source).match, char)


def _characters(source: str) -> Characters:
    return Characters(source, re.compile(source).match)
