"""Looks for orders to a model in what a server says of itself.

Texts are unmasked (:mod:`mcpsync.host.unmask`), brought to words whose ideas are known (:mod:`mcpsync.host.lexicon`),
and looked at for shapes of categories (:mod:`mcpsync.host.phrases`). It takes time in proportion to the text; what is
larger than the bounds is a finding itself, so that nothing passes for being large.

It finds the careless and slows the careful: a text without findings is still data of a stranger.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from mcpsync.host.lexicon import (
    ASK,
    BEFORE,
    DESTINATION,
    DISCARD,
    FILE,
    FOREIGN,
    FREE,
    HIDE,
    LEXICON,
    MODEL,
    NOT,
    NOW,
    OTHER,
    PERSON,
    READ,
    REVEAL,
    RULES,
    SAID,
    SECRET,
    SEND,
    STEALTH,
    SYSTEM,
    TELL,
    VOID,
    YOU,
)
from mcpsync.host.phrases import MARKERS, SHAPES
from mcpsync.host.remembered import Remembered
from mcpsync.host.schemes import SCHEMES
from mcpsync.host.unmask import unmask
from mcpsync.types import Tool

__all__ = ["MAX_CHARACTERS", "MAX_DEPTH", "MAX_NODES", "Finding", "scan", "scan_text", "scan_tool"]

#: The most characters that are looked at in one tool or listing.
MAX_CHARACTERS = 1024 * 1024
#: The most values of one.
MAX_NODES = 20_000
#: How deeply they may be nested.
MAX_DEPTH = 64

_TOO_LARGE = "too large to scan"
_HIDDEN = "hidden text"


class Finding(NamedTuple):
    """Something that looks like an order to the model.

    :ivar category: of what kind
    :ivar path: where, as ``input_schema.properties.path.description``; empty for a bare text
    """

    category: str
    path: str

    def __str__(self) -> str:
        return "%s in %s" % (self.category, self.path) if self.path else self.category


# -- one text ------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\W_]+|[.!?;…。！？।؟]+(?=\s|$|[\"'”’)\]])|[。！？।]|\n[ \t\r]*\n|[，、,]")
_END = re.compile(r"[.!?;…。！？।؟，\n]")
_COMMA = frozenset(",、")
_AFTER_END = 6
_CHINESE = "\u3040"
"""From here on, a comma stands between clauses of their own, as a full stop elsewhere."""
_APART = re.compile(r"(?<![^\W_])(?:[^\W\d_](?:[^\w\r\n]|_){1,3}){3,}[^\W\d_](?![^\W_])")
_LETTER_GAPS = re.compile(r"(?<=\S)(?:[^\w\r\n]|_)(?=\S)")
_DASH_BETWEEN = re.compile(r"(?<=[^\W_])(?:[^\w\s]|_)(?=[^\W_])")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _LettersAlone(Dict[int, Optional[int]]):
    """For :meth:`str.translate`: small letters stay, digits become the letters that they stand for, all else goes."""

    def __missing__(self, code: int) -> None:
        return None


_LETTERS_ALONE = _LettersAlone({code: code for code in range(ord("a"), ord("z") + 1)})
_LETTERS_ALONE.update(str.maketrans("013457@$!|", "oieastasil"))
_COMPACT = (
    (
        "instruction override",
        re.compile(
            r"(?:ignor(?:e|ing)|disregard|forget|overrid(?:e|ing)|bypass)(?:all|any|the|of|my|your|every|these|those|each){0,4}"
            r"(?:previous|prior|above|earlier|preceding|system|former|developer|safety)(?:system|developer|safety|given|set|of|the)"
            r"{0,3}(?:instruction|prompt|rule|guideline|directive|order|command|constraint)"
            r"|(?:ignore|disregard|forget)(?:all|any)(?:of)?(?:the|your)?(?:instruction|directive|guideline)"
        ),
    ),
    (
        "prompt leak",
        re.compile("(?:reveal|print|repeat|leak|dump)(?:me)?(?:your|the)(?:full|entire|whole|hidden)?systemprompt"),
    ),
    (
        "concealment",
        re.compile(
            "(?:donot|dont|never)(?:tell|inform|mentionthisto|mentionitto)(?:the|this|your)?(?:to)?(?:the)?user"
        ),
    ),
    ("jailbreak", re.compile("doanythingnow|youarenowdan")),
)
_TURNABLE = (
    *("ignore", "disregard", "forget", "reveal", "tell", "previous", "instructions", "instruction", "rules", "system"),
    *("prompt", "password", "passwords", "secret", "user"),
)
_TURNED = frozenset(
    coder(word) for word in _TURNABLE for coder in (lambda word: word[::-1], lambda word: codecs.encode(word, "rot13"))
)

_FOREIGN_SHAPES: Tuple[Tuple[str, Tuple[int, ...], int, int], ...] = tuple(
    (category, tuple(idea << FOREIGN for idea in ideas), window, least)
    for category, ideas, window, least in (
        ("instruction override", (DISCARD, RULES, BEFORE | YOU | SYSTEM), 9, 2),
        ("instruction override", (DISCARD, SAID, BEFORE | SYSTEM), 9, 3),
        ("instruction override", (VOID, RULES, BEFORE | YOU | SYSTEM), 9, 3),
        ("prompt leak", (REVEAL, RULES, YOU), 8, 2),
        ("concealment", (NOT, TELL, PERSON), 8, 3),
        ("concealment", (STEALTH,), 0, 1),
        ("concealment", (HIDE, PERSON, OTHER), 6, 3),
        ("exfiltration", (SEND, SECRET, PERSON | BEFORE | DESTINATION | MODEL), 9, 3),
        ("exfiltration", (FILE, READ, SEND), 16, 3),
        ("jailbreak", (NOT, FREE, YOU), 9, 3),
        ("jailbreak", (NOW, YOU, MODEL), 8, 3),
        ("consent bypass", (NOT, ASK, PERSON), 6, 3),
    )
)


def scan_text(text: str) -> List[str]:
    """The categories that one text falls into; none for most.

    :param text: as the server sent it, of any length
    """
    return list(_remembered(text) if len(text) <= _REMEMBERED_CHARACTERS else _looked_through(text))


def _looked_through(text: str) -> Tuple[str, ...]:
    plain, tricks, hidden = unmask(text)
    found = [_HIDDEN] if tricks else []
    for each in (plain, *hidden):
        found.extend(_categories(each))
    return tuple(dict.fromkeys(found))


_REMEMBERED_CHARACTERS = 4096
_remembered = lru_cache(2048)(_looked_through)
"""Servers list the same tools again whenever they are connected anew, and several may be of one kind."""


def _categories(plain: str) -> Iterator[str]:
    for category, cues, pattern in MARKERS:
        for cue in cues:  # no any() of a generator: this is the longest way of most texts
            if cue in plain:
                if pattern.search(plain):
                    yield category
                break
    plain = _APART.sub(_together, plain)
    tokens = _TOKEN.findall(plain)
    yield from _in_words(tokens)
    letters = plain.translate(_LETTERS_ALONE)
    for category, pattern in _COMPACT:
        if pattern.search(letters):
            yield category
    if not _TURNED.isdisjoint(tokens):
        for turned in (plain[::-1], codecs.encode(plain, "rot13"), " ".join(token[::-1] for token in tokens)):
            yield from _in_words(_TOKEN.findall(turned))


def _together(run: re.Match[str]) -> str:
    """Letters set apart, as words again: a wider gap is one between words."""
    letters = run.group()
    dashed = _DASH_BETWEEN.findall(letters)
    if len(dashed) * 3 > len(letters):  # so a space is one between words, too
        return letters.replace(Counter(dashed).most_common(1)[0][0], "")
    return _LETTER_GAPS.sub("", letters)


def _in_words(tokens: List[str]) -> Iterator[str]:
    """The categories by words: each sentence is looked at for those alone whose ideas it and the one before it have."""
    tokens = LEXICON.joined(tokens)
    every = 0
    for token in set(tokens):
        for _, bits in LEXICON[token][0]:
            every |= bits
    shapes, foreign = _possible(every)
    if not shapes and not foreign:
        return  # most texts
    sentence: List[str] = []
    sentences: List[Tuple[int, List[str]]] = []
    hits: List[Tuple[int, int]] = []
    ideas = at = 0
    before = ""
    for token in tokens:
        if token in _COMMA:
            at += _AFTER_END if token == "," and before >= _CHINESE else 1
            continue
        before = token[-1]
        meant, word = LEXICON[token]
        if not meant and _END.match(token):
            if sentence:
                sentences.append((ideas, sentence))
                sentence, ideas = [], 0
            at += _AFTER_END
            continue
        for offset, bits in meant:
            ideas |= bits
            hits.append((at + offset, bits))
        sentence.append(word)
        at += 1 + (len(token) // 2 if len(meant) > 1 else 0)
    sentences.append((ideas, sentence))
    for shape in shapes:
        if shape.pattern.search(_line(sentences, shape.needs)):
            yield shape.category
    for category, needs, window, least in foreign:
        if _near(hits, needs, window, least):
            yield category


@lru_cache(4096)
def _possible(every: int) -> Tuple[List[Any], List[Tuple[str, Tuple[int, ...], int, int]]]:
    """The shapes that a text with these ideas may have."""
    return (
        [shape for shape in (*SHAPES, *SCHEMES) if all(every & need for need in shape.needs)],
        [shape for shape in _FOREIGN_SHAPES if all(every & need for need in shape[1])],
    )


def _line(sentences: List[Tuple[int, List[str]]], needs: Tuple[int, ...]) -> str:
    """The sentences in which, or in which and the next, these ideas are."""
    chosen: List[str] = []
    last = -1
    for index, (ideas, words) in enumerate(sentences):
        before = sentences[index - 1][0] if index else 0
        if all((ideas | before) & need for need in needs):
            if index and last != index - 1:
                chosen += sentences[index - 1][1]
                chosen.append(".")
            chosen += words
            chosen.append(".")
            last = index
    return " ".join(chosen)


def _near(hits: List[Tuple[int, int]], needs: Tuple[int, ...], window: int, least: int) -> bool:
    """Whether all these ideas stand within so many words."""
    wanted = 0
    for need in needs:
        wanted |= need
    relevant = [(at, bits & wanted) for at, bits in hits if bits & wanted]
    for index, (start, _) in enumerate(relevant):
        seen = 0
        for count, (at, bits) in enumerate(relevant[index:], 1):
            if at - start > window:
                break
            seen |= bits
            if count >= least and all(seen & need for need in needs):
                return True
    return False


# -- whole definitions ---------------------------------------------------------------------------------------------


class _TooLarge(Exception):
    pass


def scan(value: Any) -> List[Finding]:
    """What looks like an order in any string or key of a JSON value: a listing, a text, a definition."""
    return _scanned([_look_at(value)], lambda: _pieces(value, ""))


def scan_tool(tool: Tool) -> List[Finding]:
    """What looks like an order in a tool's name, title, description, annotations, or in its schemas."""
    wire = tool.to_wire()
    rest = {key: each for key, each in wire.items() if key not in _SAID}
    said = "\n".join(str(wire[key]) for key in ("title", "description") if wire.get(key))
    return _scanned([_look([_words_of(tool.name), said]), _look_at_rest(rest)], lambda: _tool_pieces(tool))


def _tool_pieces(tool: Tool) -> Iterator[Tuple[str, str]]:
    yield "name", _words_of(tool.name)
    wire = tool.to_wire()
    said = [str(wire[key]) for key in ("title", "description") if wire.get(key)]
    if len(said) == 2:
        yield "title and description", "\n".join(said)  # an order may be spread over the two
    elif said:
        yield ("title" if tool.title else "description"), said[0]
    yield from _pieces({key: each for key, each in wire.items() if key not in ("name", "title", "description")}, "")


class _Look(NamedTuple):
    """One look for all texts of a part of a definition.

    :ivar characters: how many there are; None: there are too many values, or too deep ones
    :ivar clean: nothing was found
    """

    characters: Optional[int]
    clean: bool


def _look(texts: List[str]) -> _Look:
    characters = sum(map(len, texts))
    return _Look(characters, characters <= MAX_CHARACTERS and not scan_text("\n\n".join(texts)))


def _look_at(value: Any) -> _Look:
    try:
        return _look(_texts(value))
    except _TooLarge:
        return _Look(None, False)


_look_at_rest = Remembered(_look_at)


def _scanned(looks: List[_Look], pieces: Callable[[], Iterator[Tuple[str, str]]]) -> List[Finding]:
    """
    :param looks: at all texts, in parts that are looked at by themselves: what many tools have alike is remembered
    :param pieces: gives the texts with where they are; asked only if something was found
    """
    characters = 0
    for look in looks:
        if look.characters is None:
            return [Finding(_TOO_LARGE, "")]
        characters += look.characters
    if characters > MAX_CHARACTERS:
        return [Finding(_TOO_LARGE, "")]
    if all(look.clean for look in looks):
        return []  # most
    try:
        found = [Finding(category, path) for path, text in pieces() for category in scan_text(text)]
    except _TooLarge:
        return [Finding(_TOO_LARGE, "")]
    return list(dict.fromkeys(found))


def _texts(value: Any) -> List[str]:
    """All strings and keys, but for the words that every schema is made of."""
    texts: List[str] = []
    _gather((value,), 0, 0, texts)
    return texts


def _gather(nodes: Iterable[Any], depth: int, seen: int, texts: List[str]) -> int:
    """Add what is in these values and below them; gives how many values were seen by then."""
    for node in nodes:
        seen += 1
        if seen > MAX_NODES or depth > MAX_DEPTH:
            raise _TooLarge
        if isinstance(node, str):
            if node not in _TYPES:
                texts.append(node)
                if len(node) > _SHORT_KEY and " " not in node:
                    texts.append(_words_of(node))
        elif isinstance(node, (dict, Mapping)):  # the quick answer first
            texts += [_words_of(key) for key in node if isinstance(key, str) and len(key) > _SHORT_KEY]
            seen = _gather(node.values(), depth + 1, seen, texts)
        elif isinstance(node, (list, tuple)):
            seen = _gather(node, depth + 1, seen, texts)
    return seen


def _pieces(value: Any, path: str) -> Iterator[Tuple[str, str]]:
    """All strings and keys, with where they are."""
    waiting: List[Tuple[int, str, Any]] = [(0, path, value)]
    seen = 0
    while waiting:
        depth, path, node = waiting.pop()
        seen += 1
        if seen > MAX_NODES or depth > MAX_DEPTH:
            raise _TooLarge
        if isinstance(node, str):
            yield path, node
            if " " not in node:
                yield path, _words_of(node)
        elif isinstance(node, Mapping):
            for key in node:
                if isinstance(key, str) and len(key) > _SHORT_KEY:
                    yield _step(path, key), _words_of(key)
            waiting.extend((depth + 1, _step(path, str(key)), each) for key, each in _reversed(node.items()))
        elif isinstance(node, (list, tuple)):
            waiting.extend((depth + 1, "%s[%d]" % (path, at), each) for at, each in _reversed(enumerate(node)))


_SAID = ("name", "title", "description")
_TYPES = frozenset(("object", "string", "array", "integer", "number", "boolean", "null"))
_SHORT_KEY = 14
"""A key that is no longer than this holds no order."""


def _reversed(items: Iterable[Any]) -> List[Any]:
    return list(items)[::-1]


def _step(path: str, key: str) -> str:
    return "%s.%.60s" % (path, key) if path else "%.60s" % key


def _words_of(name: str) -> str:
    """A name of words that are written together."""
    return _HUMP.sub(" ", name)


def described(findings: Iterable[Finding], most: int = 3) -> Optional[str]:
    """Findings in one line; None if there are none."""
    shown = [str(finding) for finding in findings]
    if not shown:
        return None
    return "; ".join(shown[:most]) + (" and %d more" % (len(shown) - most) if len(shown) > most else "")
