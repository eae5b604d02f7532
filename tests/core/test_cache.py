"""What is kept for how long, for whom, and what makes it unusable. Specification: server/utilities/caching."""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsync.core.cache import CACHEABLE, UNKNOWN, ResponseCache, Responses, lifetime

TOOLS = ("tools/list", None)
CHANGED = "notifications/tools/list_changed"
READ = "resources/read"


def keep(
    responses: Responses,
    value: Any = "value",
    key: Tuple[str, Optional[str]] = TOOLS,
    now: float = 0.0,
    ttl_ms: Any = 1000,
    scope: Any = "private",
    who: Any = "me",
    size: int = 10,
) -> bool:
    return responses.keep(responses.begin(key, who), value, size, ttl_ms, scope, who, now)


@pytest.mark.parametrize(
    ("ttl_ms", "seconds"),
    [
        *(
            (1500, 1.5),
            (0.5, 0.0005),
            (1500.5, 1.5005),
            (10**400, 60.0),
            (11 * 365 * 86400 * 1000, 60.0),
            (1e308, 60.0),
        ),
        *((0, 0.0), (-1, 0.0), (-(10**400), 0.0), (float("nan"), 0.0), (float("inf"), 0.0), (float("-inf"), 0.0)),
        *(("60000", 0.0), (True, 0.0), (None, 0.0), ([60000], 0.0), ({}, 0.0)),
    ],
)
def test_how_long_a_result_is_fresh(ttl_ms: Any, seconds: float) -> None:
    assert lifetime(ttl_ms, 60.0) == seconds
    assert keep(Responses(ResponseCache(longest=60.0)), ttl_ms=ttl_ms) is (seconds > 0)


def test_it_is_fresh_from_its_receipt_to_its_end() -> None:
    responses = Responses(ResponseCache())
    keep(responses, now=100.0)
    found = {now: responses.fresh(TOOLS, "me", now) for now in (99.9, 100.0, 100.999, 101.0, 1e12)}
    # before its receipt: the clock went back; long after: the machine slept
    assert found == {99.9: None, 100.0: "value", 100.999: "value", 101.0: None, 1e12: None}


@pytest.mark.parametrize("scope", ["private", None, "PUBLIC", "everyone", 1, ["public"]])
def test_what_is_not_public_is_for_one_identity(scope: Any) -> None:
    responses = Responses(ResponseCache(stale_if_error=60.0))
    keep(responses, scope=scope, who="me")
    assert responses.fresh(TOOLS, "you", 0.0) is None
    assert responses.stale(TOOLS, "you", 0.0) is None
    assert responses.fresh(TOOLS, "me", 0.0) is None, "who comes back finds nothing either"
    assert responses.taken == 0


def test_what_is_public_is_for_all() -> None:
    responses = Responses(ResponseCache())
    keep(responses, scope="public", who="me")
    assert [responses.fresh(TOOLS, who, 0.0) for who in ("me", "you", UNKNOWN)] == ["value"] * 3


def test_an_unknown_identity_keeps_public_results_alone() -> None:
    responses = Responses(ResponseCache())
    assert not keep(responses, who=UNKNOWN)
    assert keep(responses, who=UNKNOWN, scope="public")


def test_an_answer_during_which_the_identity_changed_is_not_kept() -> None:
    responses = Responses(ResponseCache())
    ticket = responses.begin(TOOLS, "me")
    assert not responses.keep(ticket, "value", 1, 1000, "public", "you", 0.0)
    ticket = responses.begin(TOOLS, "me")
    responses.fresh(TOOLS, "you", 0.0)
    assert not responses.keep(ticket, "value", 1, 1000, "private", "me", 0.0)


@pytest.mark.parametrize(
    ("method", "params", "left"),
    [
        (CHANGED, {}, {"prompts/list", "resources/list", "resources/templates/list", "a", "a/b", "c"}),
        (
            "notifications/prompts/list_changed",
            {},
            {"tools/list", "resources/list", "resources/templates/list", "a", "a/b", "c"},
        ),
        ("notifications/resources/list_changed", {}, {"tools/list", "prompts/list"}),
        ("notifications/resources/updated", {"uri": "a/b"}, (CACHEABLE - {READ}) | {"c"}),
        ("notifications/resources/updated", {"uri": "a"}, (CACHEABLE - {READ}) | {"c"}),
        ("notifications/resources/updated", {"uri": 5}, CACHEABLE - {READ}),
        ("notifications/resources/updated", {}, CACHEABLE - {READ}),
        ("notifications/message", {"uri": "a"}, (CACHEABLE - {READ}) | {"a", "a/b", "c"}),
    ],
)
def test_what_a_notification_drops(method: str, params: Dict[str, Any], left: Any) -> None:
    responses = Responses(ResponseCache(stale_if_error=60.0))
    keys: List[Tuple[str, Optional[str]]] = [(name, None) for name in sorted(CACHEABLE - {READ})]
    keys += [(READ, "a"), (READ, "a/b"), (READ, "c")]
    for key in keys:
        keep(responses, key=key)
    responses.notified(method, params)
    # not even as stale: what is known to be wrong is of no use to anybody
    assert {key[1] or key[0] for key in keys if responses.stale(key, "me", 0.0)} == set(left)
    assert responses.taken == 10 * len(left)


@pytest.mark.parametrize("event", ["list_changed", "missed", "clear", "drop"])
def test_an_answer_to_what_was_asked_before_is_not_kept(event: str) -> None:
    responses = Responses(ResponseCache())
    ticket = responses.begin(TOOLS, "me")
    other = responses.begin(("prompts/list", None), "me")
    {
        "list_changed": lambda: responses.notified(CHANGED, {}),
        "missed": lambda: responses.missed(0.0),
        "clear": responses.clear,
        "drop": lambda: responses.drop("tools/list"),
    }[event]()
    assert not responses.keep(ticket, "old", 1, 1000, "public", "me", 0.0)
    kept = responses.keep(other, "other", 1, 1000, "public", "me", 0.0)
    assert kept is (event in ("list_changed", "drop"))


def test_the_answer_to_the_later_request_stays() -> None:
    responses = Responses(ResponseCache())
    earlier, later = responses.begin(TOOLS, "me"), responses.begin(TOOLS, "me")
    assert responses.keep(later, "later", 1, 1000, "public", "me", 0.0)
    assert not responses.keep(earlier, "earlier", 1, 1000, "public", "me", 0.0)
    assert responses.fresh(TOOLS, "me", 0.0) == "later"


def test_a_newer_answer_that_is_not_kept_drops_the_older() -> None:
    responses = Responses(ResponseCache())
    keep(responses)
    keep(responses, ttl_ms=0)
    assert (len(responses), responses.taken) == (0, 0)


def test_stale_for_as_long_as_allowed() -> None:
    responses = Responses(ResponseCache(stale_if_error=5.0))
    keep(responses, now=0.0)
    assert [responses.stale(TOOLS, "me", now) for now in (0.5, 5.9, 6.0)] == ["value", "value", None]
    keep(responses, now=10.0, ttl_ms=100_000)
    responses.missed(20.0)
    assert responses.fresh(TOOLS, "me", 20.0) is None
    responses.missed(24.0)  # a second one gives it no more time
    assert [responses.stale(TOOLS, "me", now) for now in (24.9, 25.0)] == ["value", None]


def test_what_may_have_changed_is_dropped_where_nothing_stale_is_allowed() -> None:
    responses = Responses(ResponseCache())
    keep(responses)
    responses.missed(0.5)
    assert (len(responses), responses.taken) == (0, 0)


def test_what_was_not_used_for_longest_goes_first() -> None:
    responses = Responses(ResponseCache(entries=2))
    for uri in "ab":
        keep(responses, key=(READ, uri))
    responses.fresh((READ, "a"), "me", 0.0)
    keep(responses, key=(READ, "c"))
    assert [uri for uri in "abc" if responses.fresh((READ, uri), "me", 0.0)] == ["a", "c"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 40), st.sampled_from(["keep", "use", "drop"]))))
@settings(max_examples=200, deadline=None)
def test_bounded_in_entries_and_bytes(steps: List[Tuple[str, int, str]]) -> None:
    responses = Responses(ResponseCache(entries=3, bytes=60))
    sizes: Dict[str, int] = {}
    for uri, size, what in steps:
        if what == "keep":
            keep(responses, key=(READ, uri), size=size)
            sizes[uri] = size
        elif what == "use":
            responses.fresh((READ, uri), "me", 0.0)
        else:
            responses.notified("notifications/resources/updated", {"uri": uri})
        left = [each for each in "abcdef" if responses.stale((READ, each), "me", 0.0)]
        assert len(left) == len(responses) <= 3
        assert responses.taken == sum(sizes[each] for each in left) <= 60


def test_a_result_larger_than_the_cache_pushes_nothing_out() -> None:
    responses = Responses(ResponseCache(bytes=60))
    keep(responses)
    assert not keep(responses, key=(READ, "a"), size=61)
    assert len(responses) == 1


# -- a change is never missed ----------------------------------------------------------------------------------


class World:
    """A server with a version, two callers, and what is on its way to the client.

    :param streams: 1: answers and notifications come in their order (stdio); 2: notifications have one of their own
    """

    def __init__(self, streams: int) -> None:
        self.responses = Responses(ResponseCache())
        self.version = 0
        self.heard = 0
        self.changes = 2
        self.ways: List[List[Tuple[str, Any]]] = [[] for _ in range(streams)]
        self.callers: Dict[str, Any] = {"a": "idle", "b": "idle"}

    def possible(self) -> List[str]:
        steps = ["change"] if self.changes else []
        for name, state in self.callers.items():
            if state == "idle":
                steps.append("ask " + name)
            elif state not in ("asked", "done"):
                steps.append("serve " + name)
        return steps + ["deliver %d" % number for number, way in enumerate(self.ways) if way]

    def take(self, step: str) -> None:
        what, _, which = step.partition(" ")
        if what == "change":
            self.changes -= 1
            self.version += 1
            self.ways[-1].append(("changed", self.version))
        elif what == "ask":
            found = self.responses.fresh(TOOLS, "me", 0.0)
            self.callers[which] = "done" if found is not None else self.responses.begin(TOOLS, "me")
        elif what == "serve":
            self.ways[0].append(("answer", (self.callers[which], self.version)))
            self.callers[which] = "asked"
        else:
            kind, detail = self.ways[int(which)].pop(0)
            if kind == "changed":
                self.heard = detail
                self.responses.notified(CHANGED, {})
            else:
                ticket, version = detail
                self.responses.keep(ticket, version + 1, 1, 1000, "public", "me", 0.0)

    def check(self, path: List[str]) -> None:
        found = self.responses.fresh(TOOLS, "me", 0.0)
        # versions are kept one higher, so that none is false
        assert found is None or found - 1 >= self.heard, (path, found - 1, self.heard)


def _all_orders(streams: int) -> Iterator[List[str]]:
    paths: List[List[str]] = [[]]
    while paths:
        path = paths.pop()
        world = World(streams)
        for step in path:
            world.take(step)
        world.check(path)
        following = world.possible()
        if not following:
            yield path
        paths += [[*path, step] for step in following]


@pytest.mark.parametrize("streams", [1, 2])
def test_no_order_of_events_leaves_an_older_result_behind_a_change(streams: int) -> None:
    count = sum(1 for _ in _all_orders(streams))
    assert count > 1_000, "every order of two calls, two changes, and what comes of them"


def test_nor_do_ten_thousand_long_ones() -> None:
    chance = random.Random(20260728)
    for _ in range(10_000):
        world = World(chance.choice((1, 2)))
        path: List[str] = []
        for _ in range(16):
            steps = world.possible()
            if not steps:
                break
            path.append(chance.choice(steps))
            world.take(path[-1])
            world.check(path)
            world.changes = max(world.changes, chance.choice((0, 0, 1)))
            for name, state in world.callers.items():
                if state == "done" or (state == "asked" and not any(world.ways)):
                    world.callers[name] = "idle"
