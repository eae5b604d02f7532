"""Matching regular expressions of strangers, in a time that is known beforehand.

Python's ``re`` tries one way after the other, and there can be more ways than it will ever try; once begun, it cannot
be stopped. So the ways are counted first: the tree of the expression gives the most steps for a text of some length.
Where these are few, ``re`` matches. Where they are not, all ways are followed at once, a character at a time, which
takes a time that grows with text and expression alone, and every step of it is charged. Only references back cannot be
followed so: with them, a text that is too long for ``re`` is refused.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from mcpsync.schema.regex_syntax import (
    Alternatives,
    Back,
    Characters,
    Group,
    Look,
    Node,
    Place,
    Repeat,
    Sequence,
    parse,
)
from mcpsync.schema.work import TooMuchWork, Work

__all__ = ["Pattern"]

MOST_STEPS = 50_000
"""Of ``re``, some ten nanoseconds each."""
_RE_STEPS_PER_STEP = 32
_MOST_ESTIMATES = 3_000
_MOST_STATES = 3_000
_LENGTHS = (16, 32, 64, 256, 1_024, 4_096)
_COMPILE_STEPS = 20
"""For each character of an expression."""


class Pattern:
    """A regular expression, read when it is first used.

    :param text: as the schema has it
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._ready: Optional[_Ready] = None

    def found_in(self, text: str, work: Work) -> bool:
        """Whether it matches anywhere in a text.

        :raises Unusable: it is no regular expression, or one that cannot be matched in bounded time
        """
        ready = self._ready
        if ready is None:
            work.charge(50 + _COMPILE_STEPS * len(self.text))
            ready = self._ready = _prepare(self.text)
        length = len(text)
        for longest, steps in ready.bounds:
            if length <= longest:
                work.charge(1 + steps // _RE_STEPS_PER_STEP)
                return ready.search(text) is not None
        if ready.program is None:
            ready.program = _Builder(self.text).program(ready.node)
        return _Search(text, work).anywhere(ready.program)


class _Ready:
    """An expression, prepared.

    :ivar search: of ``re``
    :ivar bounds: lengths of texts up to which that is used, with the most steps each
    :ivar program: for following all ways at once; made when it is first needed
    """

    __slots__ = ("bounds", "node", "program", "search")

    def __init__(self, node: Node, search: Callable[[str], object], bounds: List[Tuple[int, int]]) -> None:
        self.node = node
        self.search = search
        self.bounds = bounds
        self.program: Optional[_Program] = None


def _prepare(text: str) -> _Ready:
    node = parse(text)
    source = _source(node)
    if source is None:
        return _Ready(node, lambda _: None, [])
    try:
        search = re.compile(source).search
    except (re.error, OverflowError):  # it can do less than ECMA-262: look behind for texts of any length, say
        return _Ready(node, lambda _: None, [])
    anchored = _is_anchored(node)
    bounds = []
    for length in _LENGTHS:
        steps = _Estimate(length, 1 if anchored else length + 1).of(node)
        if steps > MOST_STEPS:
            break
        bounds.append((length, int(steps)))
    return _Ready(node, search, bounds)


# -- as Python writes it -------------------------------------------------------------------------------------------


def _source(node: Node) -> Optional[str]:
    """The expression for ``re``; None if it has no way to say it."""
    if isinstance(node, Characters):
        return node.source
    if isinstance(node, Place):
        return {"^": r"\A", "$": r"\Z", "b": r"(?a:\b)", "B": r"(?a:\B)"}[node.kind]
    if isinstance(node, Back):
        return node.group
    if isinstance(node, (Sequence, Alternatives)):
        parts = [_source(part) for part in node.parts]
        known = [part for part in parts if part is not None]
        if len(known) != len(parts):
            return None
        return "".join(known) if isinstance(node, Sequence) else "(?:%s)" % "|".join(known)
    inner = _source(node.part)
    if inner is None:
        return None
    if isinstance(node, Look):
        return "%s%s)" % (node.mark, inner)
    if isinstance(node, Group):
        return "(%s)" % inner if node.name is None else "(?P<%s>%s)" % (node.name, inner)
    most = "" if node.most is None else "%d" % node.most
    return "(?:%s){%d,%s}%s" % (inner, node.least, most, "?" if node.lazy else "")


# -- how many ways there are ---------------------------------------------------------------------------------------


def _is_anchored(node: Node) -> bool:
    """Whether it can match at the start of a text alone."""
    if isinstance(node, Place):
        return node.kind == "^"
    if isinstance(node, Sequence):
        return bool(node.parts) and _is_anchored(node.parts[0])
    if isinstance(node, Alternatives):
        return all(map(_is_anchored, node.parts))
    return isinstance(node, Group) and _is_anchored(node.part)


def _is_empty(node: Node) -> bool:
    """Whether it can match no character at all."""
    if isinstance(node, Characters):
        return False
    if isinstance(node, Sequence):
        return all(map(_is_empty, node.parts))
    if isinstance(node, Alternatives):
        return any(map(_is_empty, node.parts))
    if isinstance(node, Group):
        return _is_empty(node.part)
    return not isinstance(node, Repeat) or node.least == 0 or _is_empty(node.part)


class _Estimate:
    """The most steps that trying one way after the other takes: for each way through a part, all that follows it.

    :param length: of the text
    :param starts: places in it where a match may begin
    """

    def __init__(self, length: int, starts: int) -> None:
        self._length = length
        self._starts = starts
        self._most = MOST_STEPS / starts
        self._made = 0

    def of(self, node: Node) -> float:
        """For a whole expression; infinite if it is more than it may be."""
        return self._starts * self._then(node, 1.0)

    def _then(self, node: Node, rest: float) -> float:
        """For a part, and ``rest`` for what follows each way through it."""
        self._made += 1
        if rest > self._most or self._made > _MOST_ESTIMATES:
            return float("inf")
        if isinstance(node, (Characters, Place)):
            return 1 + rest
        if isinstance(node, Back):
            return 1 + self._length + rest
        if isinstance(node, Sequence):
            following: Optional[Node] = None
            for part in reversed(node.parts):
                if _ends_before(part, following):
                    rest += 2 * self._length  # of all ways through the part, one goes on
                else:
                    rest = self._then(part, rest)
                following = part
            return rest
        if isinstance(node, Alternatives):
            return 1 + sum(self._then(part, rest) for part in node.parts)
        if isinstance(node, Look):
            return 1 + self._then(node.part, 1.0) + rest
        if isinstance(node, Group):
            return 1 + self._then(node.part, rest)
        return self._repeated(node, rest)

    def _repeated(self, node: Repeat, rest: float) -> float:
        most = self._length if node.most is None else node.most
        if not _is_empty(node.part):
            most = min(most, self._length)
        most = max(most, min(node.least, self._length))
        if isinstance(node.part, Characters):
            return 1 + most + (most - min(node.least, most) + 1) * rest
        steps = rest
        for count in range(most, 0, -1):
            steps = 1 + self._then(node.part, steps) + (rest if count > node.least else 0.0)
            if steps > self._most:
                return float("inf")
        return steps


def _ends_before(part: Node, following: Optional[Node]) -> bool:
    """Whether what is repeated ends where the next character stands, which is none of its own."""
    return (
        isinstance(part, Repeat)
        and isinstance(part.part, Characters)
        and isinstance(following, Characters)
        and following.only is not None
        and not part.part.test(following.only)
    )


# -- all ways at once ----------------------------------------------------------------------------------------------


class _Instruction(NamedTuple):
    """A state: a character to take, a place to be at, something to look for, or others to go on with.

    :ivar then: the states that follow
    """

    then: Tuple[int, ...]
    test: Optional[Callable[[str], object]] = None
    place: Optional[str] = None
    look: Optional[_Looking] = None


class _Program(NamedTuple):
    """States by number: 0 is the end.

    :ivar start: the first one
    """

    states: List[_Instruction]
    start: int


class _Looking(NamedTuple):
    program: _Program
    ahead: bool
    wanted: bool


class _Builder:
    """Makes programs of one expression.

    :param text: of it
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._made = 0

    def program(self, node: Node) -> _Program:
        """
        :raises TooMuchWork: it is too large, or refers back
        """
        states = [_Instruction(())]
        return _Program(states, self._build(node, 0, states))

    @staticmethod
    def _add(instruction: _Instruction, states: List[_Instruction]) -> int:
        states.append(instruction)
        return len(states) - 1

    def _build(self, node: Node, then: int, states: List[_Instruction]) -> int:
        """The state that a part begins with, where it goes on with ``then``."""
        self._made += 1
        if self._made > _MOST_STATES:
            raise TooMuchWork("the regular expression %.60r is too large" % self._text)
        if isinstance(node, Characters):
            return self._add(_Instruction((then,), test=node.test), states)
        if isinstance(node, Place):
            return self._add(_Instruction((then,), place=node.kind), states)
        if isinstance(node, Look):
            looking = _Looking(self.program(node.part), "<" not in node.mark, "=" in node.mark)
            return self._add(_Instruction((then,), look=looking), states)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._build(part, then, states)
            return then
        if isinstance(node, Alternatives):
            branches = tuple(self._build(part, then, states) for part in node.parts)
            return self._add(_Instruction(branches), states)
        if isinstance(node, Group):
            return self._build(node.part, then, states)
        if isinstance(node, Repeat):
            return self._repeat(node, then, states)
        raise TooMuchWork(
            "the regular expression %.60r cannot be matched in bounded time against a long text" % self._text
        )

    def _repeat(self, node: Repeat, then: int, states: List[_Instruction]) -> int:
        if node.most is None:
            loop = self._add(_Instruction(()), states)
            states[loop] = _Instruction((self._build(node.part, loop, states), then))
            then = loop
        else:
            end = then
            for _ in range(node.most - node.least):
                then = self._add(_Instruction((self._build(node.part, then, states), end)), states)
        for _ in range(node.least):
            then = self._build(node.part, then, states)
        return then


class _Search:
    """Follows all ways through one text at once."""

    def __init__(self, text: str, work: Work) -> None:
        self._text = text
        self._work = work
        self._looked: Dict[Tuple[int, int], bool] = {}

    def anywhere(self, program: _Program) -> bool:
        """Whether a program matches at any place."""
        return self._follow(program, 0, len(self._text), True, False)

    def _follow(self, program: _Program, begin: int, end: int, anywhere: bool, to_the_end: bool) -> bool:
        """Whether it matches from ``begin``, or from anywhere after that, and if wanted exactly up to ``end``."""
        taken: List[int] = [program.start]
        for at in range(begin, end + 1):
            seen = set(taken)
            takers: List[_Instruction] = []
            while taken:
                state = taken.pop()
                if state == 0:
                    if at == end or not to_the_end:
                        return True
                    continue
                instruction = program.states[state]
                if instruction.test is not None:
                    takers.append(instruction)
                elif self._goes_on(instruction, at):
                    for then in instruction.then:
                        if then not in seen:
                            seen.add(then)
                            taken.append(then)
            self._work.charge(1 + len(seen))
            if at == end or not (takers or anywhere):
                break
            char = self._text[at]
            found = {each.then[0] for each in takers if each.test is not None and each.test(char)}
            if anywhere:
                found.add(program.start)
            taken = list(found)
        return False

    def _goes_on(self, instruction: _Instruction, at: int) -> bool:
        if instruction.place is not None:
            return self._is_at(instruction.place, at)
        look = instruction.look
        if look is None:
            return True
        key = (id(look), at)
        found = self._looked.get(key)
        if found is None:
            if look.ahead:
                found = self._follow(look.program, at, len(self._text), False, False)
            else:
                found = self._follow(look.program, 0, at, True, True)
            self._looked[key] = found
        return found is look.wanted

    def _is_at(self, place: str, at: int) -> bool:
        text = self._text
        if place == "^":
            return at == 0
        if place == "$":
            return at == len(text)
        edge = (at > 0 and _is_word(text[at - 1])) is not (at < len(text) and _is_word(text[at]))
        return edge is (place == "b")


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
