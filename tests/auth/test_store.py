"""Stores: what is kept comes back, from other processes too, and nothing in a folder makes them fail."""

from __future__ import annotations

import json
import logging
import os
import pickle
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, List

import pytest

from mcpsync.auth.credentials import ClientIdentity, Credentials, StoreKey, Tokens
from mcpsync.auth.store import FileStore, MemoryStore, state_folder
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

PATIENCE = 20.0
posix = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")


def credentials(access: str = "access-1", account: str = "web") -> Credentials:
    return Credentials(
        issuer="https://as.example",
        resource="https://mcp.example/mcp",
        account=account,
        identity=ClientIdentity("client", "secret", "client_secret_basic", "https://as.example"),
        token_endpoint="https://as.example/token",
        tokens=Tokens(access, expires_at=1.5, refresh_token="refresh-1", scope=("a", "b")),
    )


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FileStore(str(tmp_path / "deep" / "folder")) if request.param == "file" else MemoryStore()


def entries(store: FileStore) -> List[Path]:
    return sorted(Path(store.folder).glob("*.json"))


def test_what_is_kept_comes_back(store: Any) -> None:
    value = credentials()
    assert store.load(value.key) is None
    store.save(value.key, value)
    assert store.load(value.key) == value
    assert store.load(value.key._replace(account="other")) is None
    assert store.load(value.key._replace(issuer="https://other.example")) is None
    assert store.keys() == [value.key]
    store.save(value.key, credentials("access-2"))
    assert store.load(value.key).tokens.access_token == "access-2"
    store.delete(value.key)
    store.delete(value.key)
    assert store.load(value.key) is None
    assert store.keys() == []


def test_a_lock_is_held_by_one(store: Any) -> None:
    key = credentials().key
    with store.lock(key, Deadline(PATIENCE)):
        with store.lock(key._replace(account="other"), Deadline(0)):
            pass
        with pytest.raises(AuthError, match="did not let go in time"), store.lock(key, Deadline(0.02)):
            pass
        got = threading.Event()

        def wait() -> None:
            with store.lock(key, Deadline(PATIENCE)):
                got.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not got.is_set()
    waiter.join(PATIENCE)
    assert got.is_set()
    with store.lock(key, Deadline(0)):
        pass


def test_a_store_shows_no_secret(store: Any) -> None:
    store.save(credentials().key, credentials())
    assert "access-1" not in repr(store)


@posix
def test_files_are_private_and_only_whole_ones_are_seen(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    store = FileStore(str(tmp_path / "a" / "b"))
    store.save(credentials().key, credentials())
    (path,) = entries(store)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    os.chmod(path, 0o644)
    os.chmod(path.parent, 0o755)
    assert store.load(credentials().key) == credentials()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.save(credentials().key, credentials())
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"format": 2}',
        b'{"format": 1, "key": ["a", "b"]}',
        b'{"format": 1, "key": ["https://as.example", "https://mcp.example/mcp", "web"], "credentials": {"issuer": 7}}',
        b'{"format": 1, "key": ["a", "b", "c"], "credentials": ' + b"[" * 100_000,
        b'{"format": 1, "key": ["a", "b", "c"], "credentials": {"issuer": "a", "resource": "b", "account": "c", '
        b'"identity": {"client_id": "x", "issuer": "a", "secret_expires_at": 1' + b"0" * 400 + b"}}}",
        b"x" * 2_000_000,
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_no_entry_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    store = FileStore(str(tmp_path))
    key = credentials().key
    store.save(key, credentials())
    (path,) = entries(store)
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING, "mcpsync"):
        assert store.load(key) is None
        assert store.load(key) is None
    assert len(caplog.records) == 1
    (aside,) = tmp_path.glob("*.aside")
    assert aside.read_bytes() == content
    assert str(aside) in caplog.text
    store.save(key, credentials())
    assert store.load(key) == credentials()
    assert store.keys() == [key]


def test_the_entry_of_another_key_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FileStore(str(tmp_path))
    mine, other = credentials(), credentials(account="other")
    store.save(other.key, other)
    (path,) = entries(store)
    content = path.read_bytes()
    store.save(mine.key, mine)
    (own,) = [each for each in entries(store) if each != path]
    own.write_bytes(content)
    assert store.keys() == [other.key]
    assert store.load(mine.key) is None
    assert "another key" in caplog.text
    assert "access-1" not in caplog.text


@posix
def test_links_and_folders_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FileStore(str(tmp_path / "store"))
    key = credentials().key
    store.save(key, credentials())
    (path,) = entries(store)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.keys() == []
    assert store.load(key) is None
    assert (tmp_path / "elsewhere").exists()
    path.mkdir()
    assert store.keys() == []
    assert store.load(key) is None
    assert len(caplog.records) == 2
    store.save(key, credentials())
    assert store.load(key) == credentials()


@posix
def test_an_entry_stays_where_it_is_while_no_file_can_be_opened(tmp_path: Path) -> None:
    import resource

    store = FileStore(str(tmp_path))
    key = credentials().key
    store.save(key, credentials())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(AuthError, match="cannot be read") as caught:
            store.load(key)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert caught.value.passing
    assert store.load(key) == credentials()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = FileStore(str(tmp_path / "file" / "store"))
    with pytest.raises(AuthError, match="store"):
        store.save(credentials().key, credentials())
    with pytest.raises(AuthError, match="store"), store.lock(credentials().key, Deadline(1)):
        pass


def test_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MCPSYNC_HOME", raising=False)
    monkeypatch.delenv("MCPSYNC_PROFILE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert state_folder() == str(tmp_path / ".mcpsync")
    monkeypatch.setenv("MCPSYNC_HOME", str(tmp_path / "x"))
    monkeypatch.setenv("MCPSYNC_PROFILE", "work")
    assert state_folder() == str(tmp_path / "x" / "profiles" / "work")
    assert FileStore().folder == str(tmp_path / "x" / "profiles" / "work" / "credentials")
    for bad in ("..", "a/b"):
        monkeypatch.setenv("MCPSYNC_PROFILE", bad)
        with pytest.raises(AuthError, match="MCPSYNC_PROFILE"):
            state_folder()


def test_a_file_store_pickles(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    assert pickle.loads(pickle.dumps(store)).folder == store.folder


# -- between processes

HOLD = """
import os, sys
from mcpsync.auth.lock import locked_file
from mcpsync.deadline import Deadline
with locked_file(sys.argv[1], Deadline(20)):
    print("held", flush=True)
    sys.stdin.read()
"""

COUNT = """
import sys, threading
from mcpsync.auth.lock import locked_file
from mcpsync.deadline import Deadline

def count():
    for _ in range(25):
        with locked_file(sys.argv[1], Deadline(60)):
            with open(sys.argv[2]) as file:
                number = int(file.read() or 0)
            with open(sys.argv[2], "w") as file:
                file.write(str(number + 1))

threads = [threading.Thread(target=count) for _ in range(3)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_and_their_threads_take_turns(tmp_path: Path) -> None:
    number = tmp_path / "number"
    number.write_text("0")
    processes = [start(COUNT, str(tmp_path / "lock"), str(number)) for _ in range(3)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert number.read_text() == "225"


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    from mcpsync.auth.lock import locked_file

    path = str(tmp_path / "lock")
    with start(HOLD, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(AuthError), locked_file(path, Deadline(0.02)):
            pass
        process.kill()
        process.wait(PATIENCE)
        with locked_file(path, Deadline(PATIENCE)):
            pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_holds_nothing(tmp_path: Path) -> None:
    from mcpsync.auth.lock import locked_file

    path = str(tmp_path / "lock")
    go_on, let_go = os.pipe()
    told, tell = os.pipe()
    with locked_file(path, Deadline(0)):
        child = os.fork()
        if child == 0:
            os.close(let_go)
            taken = b"1"
            try:
                with locked_file(path, Deadline(0.02)):
                    pass
            except AuthError:
                taken = b"0"
            os.write(tell, taken)
            os.read(go_on, 1)  # lives on until the parent has seen what it wants
            os._exit(0)
        assert os.read(told, 1) == b"0"
        with pytest.raises(AuthError), locked_file(path, Deadline(0.02)):
            pass
    try:
        with locked_file(path, Deadline(0)):
            pass
    finally:
        for each in (go_on, let_go, told, tell):
            os.close(each)
        os.waitpid(child, 0)


def test_readers_never_see_half_an_entry(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    key = credentials().key
    store.save(key, credentials())
    over = threading.Event()
    odd: List[Any] = []

    def read() -> None:
        while not over.is_set():
            value = store.load(key)
            if value is None or value.tokens is None:
                odd.append(value)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for number in range(60):
        store.save(key, credentials("access-%d" % number))
    over.set()
    for each in readers:
        each.join(PATIENCE)
    assert odd == []
    assert json.loads(entries(store)[0].read_text())["format"] == 1
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith((".tmp", ".aside"))] == []


def test_a_key_with_any_text(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path))
    key = StoreKey("", "https://mcp.example/../x?\ud800", "a/b\0c")
    store.save(key, credentials())
    assert store.load(key) == credentials()
