"""A14: processes whose threads are no threads, and those that have none."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any, List

import pytest

from tests.faults.program import run
from tests.peers.scripted import peer


def needs(package: str) -> Any:
    """Skips a test, by the name of the package, where it is not installed; never on CI."""
    missing = importlib.util.find_spec(package) is None and not os.environ.get("CI")
    return pytest.mark.skipif(missing, reason="%s is not installed" % package)


# What these packages say of themselves on newer Pythons is not ours to judge.
QUIET = ("-W", "ignore")
PACKAGES = [pytest.param(package, marks=needs(package)) for package in ("gevent", "eventlet")]


def patch(package: str, advised: bool) -> None:
    if package == "gevent":
        from gevent import monkey

        without = {"thread": False, "queue": False, "select": False, "subprocess": False} if advised else {}
        monkey.patch_all(**without)
    else:
        import eventlet

        without = {"thread": False, "os": False, "select": False, "subprocess": False} if advised else {}
        eventlet.monkey_patch(**without)


def patch_part(package: str, part: str) -> None:
    if package == "gevent":
        from gevent import monkey

        getattr(monkey, "patch_" + part)()
    else:
        import eventlet

        eventlet.monkey_patch(**{part: True})


def is_refused(folder: str, command: List[str], package: str, when: str) -> None:
    import time

    if when == "before":
        patch(package, advised=False)
    import mcpsync

    if when == "after":
        patch(package, advised=False)
    elif when != "before":
        patch_part(package, when)
    start = time.monotonic()
    client = mcpsync.Client(command, name="web")
    for use in (client.open, lambda: client.call_tool("echo"), lambda: client.submit("echo"), client.list_tools):
        try:
            use()
            raise AssertionError
        except mcpsync.ConnectFailed as error:
            assert str(error).startswith("server 'web': %s has patched" % package), error
            assert "thread=False" in str(error) and "\n" not in str(error)
            assert error.permanent
    client.close()
    assert time.monotonic() - start < 5
    print("refused")


@pytest.mark.parametrize("when", ["before", "after", "thread", "select", "subprocess"])
@pytest.mark.parametrize("package", PACKAGES)
def test_a14_patched_threads_are_refused(tmp_path: Path, package: str, when: str) -> None:
    server = peer(tmp_path)
    helpers = [patch, patch_part]
    run(is_refused, str(tmp_path), server.command, package, when, helpers=helpers, options=QUIET).check("refused")
    assert server.events("started") == []


def works(folder: str, command: List[str], package: str, how: str) -> None:
    if how == "patched as advised":
        patch(package, advised=True)
    elif how == "imported":
        __import__(package)
    import threading

    import mcpsync

    def ask(request: Any) -> bool:
        return client.call_tool("echo", {"text": "x"}).text == "x"

    with mcpsync.connect(command, name="web", elicitation=ask) as client:
        form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        questions = {"q": {"method": "elicitation/create", "params": form}}
        assert "accept" in client.call_tool("rounds", {"questions": questions}, timeout=10).text
        assert client.submit("echo", {"text": "y"}).result(10).text == "y"
        try:
            client.call_tool("silent", timeout=0.1)
            raise AssertionError
        except mcpsync.RequestTimeout:
            pass
        users = [threading.Thread(target=client.call_tool, args=("jumbled", {"text": "z"})) for _ in range(8)]
        for user in users:
            user.start()
        for user in users:
            user.join()
        try:
            client.call_tool("die", {"code": 4})
            raise AssertionError
        except mcpsync.ProcessExited as error:
            assert error.exit_code == 4, error
    print("works")


@pytest.mark.parametrize("how", ["patched as advised", "imported"])
@pytest.mark.parametrize("package", PACKAGES)
def test_a14_without_patched_threads_it_works(tmp_path: Path, package: str, how: str) -> None:
    server = peer(tmp_path)
    run(works, str(tmp_path), server.command, package, how, helpers=[patch], options=QUIET).check("works")
    server.wait_ended()


def inside_uwsgi(folder: str, command: List[str], options: Any) -> None:
    import sys
    import types

    uwsgi = types.ModuleType("uwsgi")  # as the server injects it
    uwsgi.opt = options  # type: ignore[attr-defined]
    sys.modules["uwsgi"] = uwsgi
    import mcpsync

    try:
        with mcpsync.connect(command, name="web") as client:
            print(client.call_tool("echo", {"text": "works"}).text)
    except mcpsync.ConnectFailed as error:
        print(error)


@pytest.mark.parametrize("options", [{}, {"processes": "4", "master": True}])
def test_a14_uwsgi_without_threads_is_refused(tmp_path: Path, options: Any) -> None:
    refusal = "server 'web': uWSGI runs without threads; start it with --enable-threads"
    run(inside_uwsgi, str(tmp_path), peer(tmp_path).command, options).check(refusal)


@pytest.mark.parametrize("options", [{"enable-threads": True}, {"threads": "2"}])
def test_a14_uwsgi_with_threads_works(tmp_path: Path, options: Any) -> None:
    run(inside_uwsgi, str(tmp_path), peer(tmp_path).command, options).check("works")
