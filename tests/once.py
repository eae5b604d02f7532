"""What does not depend on the interpreter: it is tried on two of them, and the others leave it out.

``tox`` runs everything on the oldest interpreter and on the one that measures coverage. On those between and after
them it runs ``-m "not once"`` with the Hypothesis profile ``few``: what threads, signals, processes, sockets, TLS, the
garbage collector and the standard library do there. Each worker counts what it left out, and the summary says it.

The marker ``once`` is put on what is listed here; a test that is not like the others of its file has the marker
``everywhere``, which wins, or ``once`` itself.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Any, List, Sequence

import pytest

ONCE = (
    # the rules of protocols, as peers break them; A and B, which are about threads, processes and signals, stay
    "tests/faults/test_[c-h]*",
    "tests/faults/test_attack_*",
    # what is said to servers that sign people and machines in
    "tests/auth/test_a*",
    "tests/auth/test_c*",
    "tests/auth/test_d*",
    "tests/auth/test_e*",
    "tests/auth/test_h*",
    "tests/auth/test_i*",
    "tests/auth/test_m*",
    "tests/auth/test_s[ei]*",
    "tests/auth/test_t*",
    "tests/client/test_retry_after.py",
    "tests/client/test_sign*",
    # texts, tables and files, without a thread of their own
    "tests/config/test_dialects.py",
    "tests/config/test_edit_property.py",
    "tests/export/*",
    "tests/host/test_context_tools.py",
    "tests/host/test_names.py",
    "tests/host/test_scan.py",
    "tests/host/test_schema_*",
    "tests/schema/*",
    # a process for each line
    "tests/cli/test_c*",
    "tests/cli/test_demo.py",
    "tests/cli/test_ends.py",
    "tests/cli/test_overview.py",
    "tests/cli/test_signing.py",
    "tests/cli/test_terminal.py",
    "tests/cli/test_urls.py",
    "tests/demo/*",
    # the tests' own tools
    "tests/conformance/*",
    "tests/peers/*",
    "tests/schemas/*",
    "tests/test_layers.py",
    "tests/test_leak_check.py",
    "tests/test_recorder.py",
    "tests/test_reliability.py",
)


@cache
def is_once(path: str) -> bool:
    """Whether a test file is listed.

    :param path: from the checkout, with slashes
    """
    return any(fnmatchcase(path, pattern) for pattern in ONCE)


class Once:
    """The plugin: marks, and has the summary say what was left out.

    With workers it is they who leave out, each the same, and pytest's own summary does not hear of it.
    """

    def __init__(self) -> None:
        self._left_out = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: List[pytest.Item]) -> None:
        """Mark what is listed, before ``-m`` looks at the markers."""
        for item in items:
            if is_once(item.nodeid.partition("::")[0]) and item.get_closest_marker("everywhere") is None:
                item.add_marker("once")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what is left out."""
        marked = sum(item.get_closest_marker("once") is not None for item in items)
        self._left_out = "%d tests were left out, %d of them marked once" % (len(items), marked)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that started this worker."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = self._left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear it from a worker."""
        self._left_out = getattr(node, "workeroutput", {}).get("left_out", self._left_out)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say it."""
        if self._left_out:
            terminalreporter.write_sep("=", self._left_out)
