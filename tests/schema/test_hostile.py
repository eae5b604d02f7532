"""Schemas made to hurt end within the steps that they get, whatever they say."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar, List

import pytest

from mcpsync.schema import validator, work
from mcpsync.schema.patterns import Pattern
from mcpsync.schema.validator import Validator
from mcpsync.schema.work import Evaluated, TooMuchWork, Unusable, Work
from tests.schema.hostile import CASES, LONG, PATTERNS

pytest.importorskip("jsonschema_specifications")


class Counted(Work):
    """Remembers each piece of work that is begun, so that its steps can be looked at afterwards."""

    begun: ClassVar[List[Work]] = []

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.begun.append(self)


def test_there_are_enough() -> None:
    assert len(CASES) >= 80
    assert len(PATTERNS) >= 20


@pytest.mark.parametrize("name", CASES)
def test_it_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Validator({"type": "integer", "title": 5 * "x"})  # the meta-schema is compiled once
    monkeypatch.setattr(validator, "Work", Counted)
    monkeypatch.setattr(Counted, "begun", [])
    schema, value = CASES[name]
    try:
        Validator(schema).mismatch(value)
    except Unusable as error:
        assert len(str(error)) < 500
    for each in Counted.begun:
        # what is left may be below zero by one piece: it was charged, refused, and not done
        assert each.left > -(10**6)
        assert each._granted is None or each._granted >= 0


def test_steps_that_are_used_up_end_it() -> None:
    doubling = {"anyOf": [{"$ref": "#/$defs/a"}] * 2, "$defs": {"a": {"allOf": [{"not": True}] * 2}}}
    check = Validator(doubling)._check
    spent = Work(1)
    check(1, spent, None)
    used = work.STEPS - spent.left
    assert 0 < used < 20
    with pytest.raises(TooMuchWork, match="too much work"):
        check(1, Work(1, steps=used // 2, per_value=0), None)
    assert check(1, Work(1, steps=used, per_value=0), None) is not None


def test_a_large_value_gets_steps_by_its_size_and_no_more_time_than_there_is() -> None:
    schema = {"items": {"type": "integer", "allOf": [{"minimum": 0}] * 3}}
    patient = Work(LONG * 5, clock=lambda: 0.0)
    assert Validator(schema)._check(LONG * 5, patient, None) is None
    assert patient._granted is not None  # more than the fixed steps
    ticks = iter([0.0, 0.5, 1.5])
    with pytest.raises(TooMuchWork, match="longer than 1 s"):
        Validator(schema)._check(LONG * 5, Work(LONG * 5, clock=lambda: next(ticks)), None)


@pytest.mark.parametrize("text", PATTERNS)
def test_no_pattern_is_given_to_re_where_it_takes_long(text: str) -> None:
    """For ``re`` there is a bound of steps; the rest is charged a step at a time."""
    pattern = Pattern(text)
    with contextlib.suppress(TooMuchWork):
        pattern.found_in("a" * 40, Work(""))
    assert pattern._ready is not None
    assert all(steps <= 50_000 for _, steps in pattern._ready.bounds)


def test_what_was_looked_at_is_handed_on_and_not_copied() -> None:
    # a copy of a million indexes at each of a hundred references in a row took ten seconds, none of them charged
    inner, outer = Evaluated(), Evaluated()
    inner.names, inner.indexes = {"a", "b"}, {1, 2}
    outer.names = {"c"}
    names, indexes = inner.names, inner.indexes
    outer.add(inner)
    assert outer.names is names and names == {"a", "b", "c"}
    assert outer.indexes is indexes and indexes == {1, 2}
    further = Evaluated()
    further.names = {"d"}
    outer.add(further)
    assert outer.names is names and names == {"a", "b", "c", "d"}


def test_parts_within_parts_that_only_references_make_schemas_are_bounded() -> None:
    part: Any = {"values": list(range(20_000))}
    references = []
    for depth in range(90):
        part = {"y": part}
        references.append({"$ref": "#/x" + "/y" * depth})
    Validator({"x": part, "allOf": references[:2]})
    with pytest.raises(Unusable, match="where no schema is expected"):
        Validator({"x": part, "allOf": references[::-1]})
