"""Where everything has to be there, a test that is skipped fails, unless what is missing cannot be had.

``CI`` or ``MCPSYNC_REQUIRE_INTEROP=1`` in the environment says that everything has to be there: the extras, the peers,
the limits of the system. Elsewhere a skip is named in the summary (``-rs``).
"""

from __future__ import annotations

import os
from typing import Any, Generator

import pytest

EXCUSED = {
    "needs permissions that hold": "root may write everywhere",
    "there is no IPv6 here": "of containers, often",
    "this interpreter does not list its library": "before 3.10",
    "the interpreter itself does not collect within": "since 3.12",
    "this interpreter converts integers of any length": "early patch releases of 3.9 and 3.10",
    "this interpreter writes integers of any length": "the same",
}
"""Reasons, and when they hold."""


def everything_is_there() -> bool:
    """Whether a skip is a failure."""
    return os.environ.get("MCPSYNC_REQUIRE_INTEROP") == "1" or os.environ.get("CI", "").lower() not in (
        "",
        "0",
        "false",
    )


class NoSilentSkips:
    """The plugin."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, None]:
        """Turn a skip into a failure."""
        outcome = yield
        report = outcome.get_result()
        if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].partition("Skipped: ")[2]
            if everything_is_there() and reason not in EXCUSED:
                report.outcome = "failed"
                report.longrepr = "skipped, where everything has to be there (tests/skips.py): %s" % reason
