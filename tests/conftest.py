"""What every test is held to: it leaves no thread of ours and no child process behind, and what it sends is right."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

import pytest
from hypothesis import settings

from tests import once, recorder, skips

THREAD_PREFIX = "mcpsync-"
SETTLE_SECONDS = 5.0
PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Children that the standard library starts once and keeps until the interpreter ends."""
POLL_SECONDS = 0.01

settings.register_profile("mcpsync", deadline=None)  # a busy machine is no failure; pytest-timeout bounds each test
settings.register_profile("few", settings.get_profile("mcpsync"), max_examples=15)  # see tests/once.py
settings.load_profile("mcpsync")

ChildKey = Tuple[int, str]
"""Process id and start time: an id alone may be used again."""


def our_threads() -> Set[threading.Thread]:
    """The living threads that the library started."""
    return {thread for thread in threading.enumerate() if thread.name.startswith(THREAD_PREFIX)}


def has_children() -> bool:
    """Whether the system knows of any child, one that has ended included: one call, where a look at /proc is many."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # takes none of them from whoever waits for it
    except ChildProcessError:
        return False
    except AttributeError:  # not of this system
        pass
    return True


def child_processes() -> Dict[ChildKey, str]:
    """The children of this process, zombies included, with their command lines. Empty where there is no /proc."""
    children: Dict[ChildKey, str] = {}
    for stat in Path("/proc").glob("[0-9]*/stat") if has_children() else ():
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            state, parent, started = fields[0], int(fields[1]), fields[19]
            if parent != os.getpid():
                continue
            command = (stat.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it ended while we looked
            continue
        if not any(own in command for own in PYTHONS_OWN):
            key = (int(stat.parent.name), started)
            children[key] = "zombie" if state == "Z" else command
    return children


def leaks(threads_before: Set[threading.Thread], children_before: Set[ChildKey], settle: float) -> List[str]:
    """What came after the given state and is still there after at most so many seconds."""
    deadline = time.monotonic() + settle
    while True:
        threads = our_threads() - threads_before
        children = {key: command for key, command in child_processes().items() if key not in children_before}
        if not threads and not children:
            return []
        if time.monotonic() >= deadline:
            named = ["thread %s" % thread.name for thread in threads]
            return named + ["process %d: %s" % (key[0], command) for key, command in children.items()]
        time.sleep(POLL_SECONDS)  # threads and foreign processes give no event to wait for


def pytest_configure(config: pytest.Config) -> None:
    """The recorder and its markers, and a Ctrl-C that works."""
    # A shell that starts a job in the background (or nohup) has it ignore Ctrl-C or hang-ups, and Python
    # then leaves them ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_IGN:
        signal.signal(hangup, signal.SIG_DFL)
    recorder.install()
    config.pluginmanager.register(once.Once(), "once")
    config.pluginmanager.register(skips.NoSilentSkips(), "no silent skips")
    config.addinivalue_line("markers", "own_methods(*names): requests and notifications that no schema knows")
    config.addinivalue_line("markers", "once: does not depend on the interpreter: tox runs it on two of them")
    config.addinivalue_line("markers", "everywhere: depends on the interpreter, unlike others of its file")
    config.addinivalue_line("markers", "flaky(reruns): is tried again; its comment says why (pytest-rerunfailures)")
    config.addinivalue_line("markers", "unrecorded: what it sends is not held to the schemas; say why in a comment")


@pytest.fixture(autouse=True)
def sends_what_the_schema_allows(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test whose client sends a message that its revision's schema does not allow.

    The long and the compared ones are left alone: what is kept until the test is over would count.
    """
    markers = {marker.name: marker for marker in request.node.iter_markers()}
    if markers.keys() & {"unrecorded", "soak", "bench"}:
        yield
        return
    own = markers["own_methods"].args if "own_methods" in markers else ()
    with recorder.held_to_the_schema(own):
        yield


@pytest.fixture(autouse=True)
def leaves_nothing_behind(sends_what_the_schema_allows: None) -> Iterator[None]:
    """Fail the test that leaks a thread named ``mcpsync-*`` or a child process.

    A child of a fixture with a wider scope was there before the test, or is started by the first test that asks
    for it: such a fixture must start its children before this one looks, as session fixtures do.
    """
    threads, children = our_threads(), set(child_processes())
    yield
    left = leaks(threads, children, SETTLE_SECONDS)
    if left:
        pytest.fail("left behind: %s" % "; ".join(left), pytrace=False)
