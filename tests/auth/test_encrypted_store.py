"""A store that is worth nothing without its key, whatever happens to the process that writes it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List

import pytest

import mcpsync
from mcpsync.auth.credentials import ClientIdentity, Credentials, StoreKey, Tokens
from mcpsync.auth.default_store import default_store
from mcpsync.auth.encrypted_store import EncryptedStore
from mcpsync.auth.store import FileStore, StoreLocked
from mcpsync.auth.store_keys import Key, Keyring, Passphrase, new_key
from mcpsync.errors import AuthError, ConfigError, NeedsLogin

ISSUER = "https://as.example"
KEY = StoreKey(ISSUER, "https://mcp.example/mcp", "me")
SECRETS = ("SECRET-access", "SECRET-client", "mcp.example", "as.example")
TRIES, SOAK_TRIES = 30, 1000

WRITER = """
import sys
from mcpsync.auth.credentials import ClientIdentity, Credentials, Tokens
from mcpsync.auth.encrypted_store import EncryptedStore
from mcpsync.auth.store_keys import Key

folder, first, second = sys.argv[1:]
locks = [Key(first), Key(second)]
try:
    store = EncryptedStore(locks[0], folder)
    store.keys()
except Exception:
    locks.reverse()
    store = EncryptedStore(locks[0], folder)
print("writes", flush=True)
number = 0
while True:
    for account in ("a", "b", "c"):
        number += 1
        identity = ClientIdentity("x", issuer="https://as.example")
        value = Credentials(
            "https://as.example", "https://mcp.example/mcp", account, identity, "https://as.example/token",
            tokens=Tokens("access-" + account + "-" + str(number) * 50),
        )
        store.save(value.key, value)
    locks.reverse()
    store.change_lock(locks[0])
"""


def credentials(access: str = "SECRET-access", account: str = "me") -> Credentials:
    identity = ClientIdentity("x", "SECRET-client", "client_secret_basic", ISSUER)
    return Credentials(ISSUER, KEY.resource, account, identity, ISSUER + "/token", tokens=Tokens(access))


def files(folder: Path) -> List[bytes]:
    return [each.read_bytes() for each in sorted(folder.iterdir()) if each.is_file()]


@pytest.fixture
def key() -> str:
    return new_key()


def test_what_is_kept_comes_back_and_is_in_no_file(tmp_path, key):
    EncryptedStore(Key(key), str(tmp_path)).save(KEY, credentials())
    store = EncryptedStore(Key(key), str(tmp_path))
    assert store.load(KEY) == credentials()
    assert store.keys() == [KEY]
    text = b"".join(files(tmp_path)).decode("latin-1")
    assert not [secret for secret in (*SECRETS, key) if secret in text]
    store.delete(KEY)
    assert store.load(KEY) is None
    assert key not in repr(store)
    if os.name == "posix":
        assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_a_passphrase(tmp_path):
    EncryptedStore(Passphrase("correct horse"), str(tmp_path)).save(KEY, credentials())
    assert EncryptedStore(Passphrase("correct horse"), str(tmp_path)).load(KEY) == credentials()
    with pytest.raises(StoreLocked, match="locked with another one than a passphrase"):
        EncryptedStore(Passphrase("correct house"), str(tmp_path)).load(KEY)


class Remembering:
    """The keyring of a system."""

    def __init__(self) -> None:
        self.kept = {}

    def get_password(self, service, user):
        return self.kept.get((service, user))

    def set_password(self, service, user, text):
        self.kept[service, user] = text


def test_the_keyring_of_the_system(tmp_path, monkeypatch):
    there = Remembering()
    monkeypatch.setitem(sys.modules, "keyring", there)
    EncryptedStore(Keyring(), str(tmp_path)).save(KEY, credentials())
    assert EncryptedStore(Keyring(), str(tmp_path)).load(KEY) == credentials()
    assert list(there.kept) == [("mcpsync", "credentials")]
    there.kept.clear()
    with pytest.raises(StoreLocked, match="another one than a key in the keyring"):
        EncryptedStore(Keyring(), str(tmp_path)).load(KEY)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=r"mcpsync\[keyring\]"):
        EncryptedStore(Keyring(), str(tmp_path)).load(KEY)


@pytest.mark.parametrize("wrong", [Key(new_key()), Passphrase("x")], ids=["another key", "another kind"])
def test_a_wrong_key_is_an_error_and_changes_nothing(tmp_path, key, wrong):
    EncryptedStore(Key(key), str(tmp_path)).save(KEY, credentials())
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    store = EncryptedStore(wrong, str(tmp_path))
    for use in (
        lambda: store.load(KEY),
        lambda: store.save(KEY, credentials("other")),
        store.keys,
        lambda: store.change_lock(Key(key)),
    ):
        with pytest.raises(StoreLocked, match="is locked with"):
            use()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("text", ["short", "", "é" * 44, "A" * 40])
def test_what_is_no_key(tmp_path, text):
    with pytest.raises(AuthError, match="key of the store") as caught:
        EncryptedStore(Key(text), str(tmp_path)).save(KEY, credentials())
    assert not text or text not in str(caught.value)


def test_another_lock(tmp_path, key):
    old = EncryptedStore(Key(key), str(tmp_path))
    beside = EncryptedStore(Key(key), str(tmp_path))
    for account in ("a", "b"):
        old.save(KEY._replace(account=account), credentials(account, account))
    entries = [data for data in files(tmp_path) if data]
    other = new_key()
    old.change_lock(Key(other))
    assert not set(entries) & set(files(tmp_path))
    for store in (old, EncryptedStore(Key(other), str(tmp_path))):
        assert store.load(KEY._replace(account="a")) == credentials("a", "a")
        assert len(store.keys()) == 2
    for use in (lambda: beside.load(KEY._replace(account="a")), lambda: beside.save(KEY, credentials())):
        with pytest.raises(StoreLocked):
            use()


def test_what_was_plain_is_taken_over(tmp_path, key):
    plain = FileStore(str(tmp_path / "plain"))
    plain.save(KEY, credentials())
    store = EncryptedStore(Key(key), str(tmp_path / "encrypted"))
    assert store.take_over(plain) == 1
    assert (store.load(KEY), plain.load(KEY)) == (credentials(), None)


def entry(folder: Path) -> Path:
    (found,) = folder.glob("*.json")
    return found


def test_an_entry_that_was_changed_is_set_aside(tmp_path, key, caplog):
    store = EncryptedStore(Key(key), str(tmp_path))
    store.save(KEY, credentials())
    data = bytearray(entry(tmp_path).read_bytes())
    data[20] ^= 1
    entry(tmp_path).write_bytes(bytes(data))
    assert store.load(KEY) is None
    assert len(list(tmp_path.glob("*.aside"))) == 1
    assert "no key of this store, or damaged" in caplog.text


def test_an_entry_under_the_name_of_another_is_none(tmp_path, key):
    store = EncryptedStore(Key(key), str(tmp_path))
    store.save(KEY, credentials())
    first = entry(tmp_path)
    data = first.read_bytes()
    store.delete(KEY)
    other = KEY._replace(account="other")
    store.save(other, credentials(account="other"))
    entry(tmp_path).write_bytes(data)
    assert store.load(other) is None


@pytest.mark.parametrize("damage", ["gone", "empty", "text", "format"])
def test_a_seal_that_is_lost_is_not_replaced(tmp_path, key, damage):
    EncryptedStore(Key(key), str(tmp_path)).save(KEY, credentials())
    seal = tmp_path / "seal"
    whole = seal.read_bytes()
    if damage == "gone":
        seal.unlink()
    else:
        other = json.dumps({**json.loads(whole), "format": 9}).encode()
        seal.write_bytes({"empty": b"", "text": b"[1", "format": other}[damage])
    for use in (lambda store: store.load(KEY), lambda store: store.save(KEY, credentials("x"))):
        with pytest.raises(StoreLocked, match="seal"):
            use(EncryptedStore(Key(key), str(tmp_path)))
    seal.write_bytes(whole)
    assert EncryptedStore(Key(key), str(tmp_path)).load(KEY) == credentials()


def test_the_environment_says_what_it_is_locked_with(tmp_path, key, monkeypatch):
    monkeypatch.setenv("MCPSYNC_HOME", str(tmp_path))
    for name in ("KEY", "PASSPHRASE", "KEYRING"):
        monkeypatch.delenv("MCPSYNC_STORE_" + name, raising=False)
    assert type(default_store()) is FileStore
    monkeypatch.setenv("MCPSYNC_STORE_KEY", key)
    default_store().save(KEY, credentials())
    assert default_store().load(KEY) == credentials()
    assert (tmp_path / "credentials.encrypted" / "seal").exists()
    assert not (tmp_path / "credentials").exists()
    monkeypatch.setenv("MCPSYNC_STORE_PASSPHRASE", "x")
    with pytest.raises(ConfigError, match="MCPSYNC_STORE_KEY and MCPSYNC_STORE_PASSPHRASE are both set"):
        default_store()


def test_a_client_with_a_wrong_key_says_so(tmp_path, key):
    from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
    from tests.peers.http_servers import Modern

    def connected(lock):
        store = EncryptedStore(lock, str(tmp_path))
        return mcpsync.connect(resource.url, auth=mcpsync.OAuth(way=browse, store=store), protocol="2026-07-28")

    with AuthorizationServer() as server, ProtectedServer(server, behaviour=Modern()) as resource:
        with connected(Key(key)) as client:
            assert client.call_tool("work").text == "done"
        with pytest.raises(StoreLocked) as caught:
            connected(Key(new_key()))
        assert not isinstance(caught.value, NeedsLogin)
        with connected(Key(key)) as client:
            assert client.call_tool("work").text == "done"
        assert len(server.authorizations) == 1


def killed_again_and_again(folder: Path, tries: int) -> None:
    first, second = new_key(), new_key()
    accounts = ["a", "b", "c"]
    for account in accounts:
        EncryptedStore(Key(first), str(folder)).save(
            KEY._replace(account=account), credentials("access-%s-" % account, account)
        )
    for number in range(tries):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), first, second], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            line = writer.stdout.readline()
            assert line == b"writes\n", writer.stderr.read()
            time.sleep(random.uniform(0, 0.05))  # the moment of the kill is what is tried
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        found = {}
        for key in (first, second):
            store = EncryptedStore(Key(key), str(folder))
            try:
                found = {each.account: store.load(each) for each in store.keys()}  # noqa: SIM118
            except StoreLocked:
                continue
            break
        else:
            raise AssertionError("neither key is the right one, after %d kills" % number)
        assert sorted(found) == accounts
        for account, value in found.items():
            assert value is not None and value.tokens.access_token.startswith("access-%s-" % account)
        assert not list(folder.glob("*.aside"))


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_a_process_that_is_killed_while_it_writes(tmp_path):
    killed_again_and_again(tmp_path, TRIES)


@pytest.mark.soak
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_many_processes_that_are_killed_while_they_write(tmp_path):
    killed_again_and_again(tmp_path, SOAK_TRIES)


def test_an_entry_that_cannot_be_read_during_the_change_is_there_after_it(tmp_path: Path) -> None:
    locks = Key(new_key()), Key(new_key())
    store = EncryptedStore(locks[0], str(tmp_path))
    for account in ("me", "you"):
        store.save(KEY._replace(account=account), credentials(account=account))
    hidden = next(tmp_path.glob("*.json"))
    away = hidden.read_bytes()
    hidden.write_bytes(b"unreadable at the moment")
    store.change_lock(locks[1])
    hidden.write_bytes(away)
    again = EncryptedStore(locks[1], str(tmp_path))
    for account in ("me", "you"):
        assert again.load(KEY._replace(account=account)) == credentials(account=account)
    again.change_lock(locks[0])
    for account in ("me", "you"):
        assert EncryptedStore(locks[0], str(tmp_path)).load(KEY._replace(account=account)) is not None
