"""The filter of ``subscriptions/listen`` and its acknowledgement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core.subscriptions import LIST_CHANGES, Filter, acknowledged, announced

LISTS = sorted(LIST_CHANGES.values())
filters = st.builds(Filter, st.frozensets(st.sampled_from(LISTS)), st.frozensets(st.text(max_size=5), max_size=4))


def test_as_it_travels():
    wanted = Filter(frozenset(["toolsListChanged", "promptsListChanged"]), frozenset(["b:", "a:"]))
    assert wanted.to_wire() == {
        "promptsListChanged": True,
        "toolsListChanged": True,
        "resourceSubscriptions": ["a:", "b:"],
    }
    assert Filter().to_wire() == {}


@given(filters)
def test_an_acknowledgement_of_all_grants_all(wanted):
    granted = acknowledged({"notifications": wanted.to_wire()})
    assert granted == wanted
    assert wanted.missing_from(granted) == []


@given(filters, filters)
def test_what_is_missing_is_named(wanted, granted):
    missing = wanted.missing_from(granted)
    assert set(missing) == (wanted.lists - granted.lists) | (wanted.uris - granted.uris)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": 1, "other": True, "resourceSubscriptions": "a:"}},
        {"notifications": {"toolsListChanged": "yes", "resourceSubscriptions": [None, 1, ["a:"]]}},
    ],
)
def test_nonsense_grants_nothing(params):
    assert acknowledged(params) == Filter()


def test_what_a_server_announces():
    capabilities = {"tools": {"listChanged": True}, "prompts": {"listChanged": False}, "resources": {}}
    assert announced(capabilities, frozenset(LISTS)) == {"toolsListChanged"}
    assert announced(capabilities, frozenset(["promptsListChanged"])) == frozenset()
    assert announced({"tools": True, "prompts": None}, frozenset(LISTS)) == frozenset()
    assert announced(None, frozenset(LISTS)) == frozenset()
