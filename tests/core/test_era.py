"""The table of revisions, against the text of the specification."""

from __future__ import annotations

import pytest

from mcpsync.core.era import LATEST_LEGACY, LATEST_MODERN, LEGACY, MODERN, REVISIONS, declared, newest_common


def test_every_revision_is_legacy_or_modern():
    assert list(REVISIONS) == sorted(REVISIONS) == LEGACY + MODERN
    assert LATEST_LEGACY == "2025-11-25"
    assert LATEST_MODERN == "2026-07-28"
    for name, revision in REVISIONS.items():
        assert revision.name == name
        assert revision.handshake is not revision.metadata


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("batching", ["2025-03-26"]),
        ("server_requests", LEGACY),
        ("ping", LEGACY),
        ("roots_changed", LEGACY),
        ("resumption", ["2025-03-26", "2025-06-18", "2025-11-25"]),
        ("url_elicitation_error", ["2025-11-25"]),
        ("completions_declared", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        ("http_cancel", MODERN),
        ("listen", MODERN),
        ("log_per_request", MODERN),
        ("result_type", MODERN),
        ("caching", MODERN),
    ],
)
def test_which_revisions_have_it(column, expected):
    assert [name for name, revision in REVISIONS.items() if getattr(revision, column)] == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("headers", ["none", "none", "revision", "revision", "all"]),
        ("elicitation", ["none", "none", "form", "form and url", "form and url"]),
        ("tasks", ["none", "none", "none", "experimental", "extension"]),
        ("not_found", [-32002, -32002, -32002, -32002, -32602]),
    ],
)
def test_what_each_revision_says(column, expected):
    assert [getattr(revision, column) for revision in REVISIONS.values()] == expected


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (["2025-03-26", "2025-11-25", "2025-06-18"], "2025-11-25"),
        (["1900-01-01", "2024-11-05"], "2024-11-05"),
        (["2026-07-28"], None),
        ([], None),
        ([None, 1, {"a": []}, ["2025-11-25"]], None),
        ("2025-11-25", None),
        ({"2025-11-25": 1}, None),
        (None, None),
    ],
)
def test_the_newest_that_both_name(theirs, expected):
    assert newest_common(LEGACY, theirs) == expected


def test_capabilities_are_declared_as_the_revision_has_them():
    ours = {"roots": {"listChanged": True}, "sampling": {}}
    assert declared(ours, REVISIONS[LATEST_LEGACY]) == ours
    assert declared(ours, None) == ours
    assert declared(ours, REVISIONS[LATEST_MODERN]) == {"roots": {}, "sampling": {}}
    assert declared({"sampling": {}}, REVISIONS[LATEST_MODERN]) == {"sampling": {}}
    assert ours == {"roots": {"listChanged": True}, "sampling": {}}


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ({"form": {}, "url": {}}, [None, None, {}, {"form": {}, "url": {}}, {"form": {}, "url": {}}]),
        ({"form": {}}, [None, None, {}, {"form": {}}, {"form": {}}]),
        ({"url": {}}, [None, None, None, {"url": {}}, {"url": {}}]),
        ({}, [None, None, {}, {}, {}]),
    ],
)
def test_elicitation_is_declared_as_the_revision_has_it(modes, expected):
    ours = {"elicitation": modes}
    assert [declared(ours, revision).get("elicitation") for revision in REVISIONS.values()] == expected
    assert ours == {"elicitation": modes}
