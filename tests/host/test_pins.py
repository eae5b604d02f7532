"""Approvals on disk: per definition, private, shared by threads and processes, closed when damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpsync.config import ServerConfig
from mcpsync.errors import ApprovalRefused
from mcpsync.host.pins import PinStore, definition_hash, pin_key
from mcpsync.types import Tool

SERVER = ServerConfig("files", "stdio", command=("files-server", "--token", "s3cret"))


def tool(**more: Any) -> Tool:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    return Tool.from_wire({"name": "read", "description": "Reads.", "inputSchema": schema, **more})


@pytest.fixture
def store(tmp_path: Path) -> PinStore:
    return PinStore(str(tmp_path / "home" / "pins.json"))


def test_the_order_of_keys_does_not_count() -> None:
    turned = {"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "type": "object"}
    assert definition_hash(tool()) == definition_hash(tool(inputSchema=turned))


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Reads. "},
        {"title": "Read"},
        {"inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"anything": "else"},
    ],
)
def test_any_other_change_counts(change: Any) -> None:
    assert definition_hash(tool()) != definition_hash(tool(**change))


def test_metadata_and_icons_do_not_count() -> None:
    assert definition_hash(tool()) == definition_hash(tool(_meta={"n": 1}, icons=[{"src": "https://example.com/i"}]))


def test_a_lone_surrogate_has_a_hash() -> None:
    assert definition_hash(tool(description="\ud800")) != definition_hash(tool())


def test_keys_differ_by_server_target_and_tool() -> None:
    others = [
        ServerConfig("other", "stdio", command=SERVER.command),
        ServerConfig("files", "stdio", command=("evil-server",)),
        ServerConfig("files", "http", url="https://example.com/mcp"),
    ]
    keys = {pin_key(server, name) for server in (SERVER, *others) for name in ("read", "write")}
    assert len(keys) == 8


def test_kept_and_found_by_another(store: PinStore) -> None:
    key = pin_key(SERVER, "read")
    assert store.find(key) is None
    store.add(key, "a" * 64)
    assert store.find(key) == PinStore(store.path).find(key) == "a" * 64
    store.add(key, "b" * 64)
    assert store.find(key) == "b" * 64
    assert "s3cret" not in Path(store.path).read_text(encoding="utf-8")


def test_what_another_process_added_is_seen(store: PinStore) -> None:
    store.add("one", "1")
    assert store.find("two") is None
    PinStore(store.path).add("two", "2")
    assert store.find("two") == "2"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_file_is_private(store: PinStore) -> None:
    store.add("one", "1")
    assert os.stat(store.path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(store.path)).st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"format": 1}', '{"format": 2, "pins": {}}', '{"format": 1, "pins": {"a": 1}}', "[" * 100_000],
)
def test_a_damaged_file_is_closed_and_left_alone(store: PinStore, content: str) -> None:
    store.add("one", "1")
    Path(store.path).write_text(content, encoding="utf-8")
    with pytest.raises(ApprovalRefused, match="mend the file, or remove it to be asked again"):
        store.find("one")
    with pytest.raises(ApprovalRefused, match="cannot be trusted"):
        store.add("two", "2")
    assert Path(store.path).read_text(encoding="utf-8") == content
    os.unlink(store.path)
    assert store.find("one") is None


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_file_that_others_can_write_is_closed(store: PinStore) -> None:
    store.add("one", "1")
    os.chmod(store.path, 0o666)
    with pytest.raises(ApprovalRefused, match="others can write to it"):
        PinStore(store.path).find("one")


def test_where_nothing_can_be_written_it_holds_for_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    store = PinStore(str(tmp_path / "home" / "deeper" / "pins.json"))
    store.add("one", "1")
    assert store.find("one") == "1"
    assert "kept for this run alone" in caplog.text


def test_many_threads_lose_nothing(store: PinStore) -> None:
    def add(number: int) -> None:
        store.add("key-%d" % number, str(number))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(PinStore(store.path).find("key-%d" % number) == str(number) for number in range(24))


def test_several_processes_lose_nothing(store: PinStore) -> None:
    code = (
        "import sys; from mcpsync.host.pins import PinStore\n"
        "for n in range(12): PinStore(sys.argv[1]).add(sys.argv[2] + str(n), 'x')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, store.path, name]) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(json.loads(Path(store.path).read_text(encoding="utf-8"))["pins"]) == 36
