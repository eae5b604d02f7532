"""``@modelcontextprotocol/server-filesystem``: real files in a folder of the test."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import mcpsync
from mcpsync.types import AudioContent, EmbeddedResource, ImageContent
from tests.interop.side import Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

Command = Callable[[Path], List[str]]
ALL = {
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "create_directory",
    "list_directory",
    "list_directory_with_sizes",
    "directory_tree",
    "move_file",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "folder"
    folder.mkdir()
    return folder


@pytest.fixture
def client(filesystem_command: Command, folder: Path) -> Iterator[mcpsync.Client]:
    with mcpsync.connect(filesystem_command(folder), name="files") as client:
        yield client


def test_its_tools(client: mcpsync.Client) -> None:
    assert client.protocol_version == "2025-11-25"
    assert {tool.name for tool in client.list_tools()} == ALL
    assert client.list_resources() == [] and client.list_prompts() == []  # it has none, and is not asked


def test_writing_and_reading(client: mcpsync.Client, folder: Path) -> None:
    note, moved = folder / "note.txt", folder / "sub" / "moved.txt"

    def call(tool: str, **arguments: Any) -> str:
        result = client.call_tool(tool, {name: str(value) for name, value in arguments.items()})
        assert result.structured == {"content": result.text}
        return result.text

    text = "first\nzwölf \u2028 \U0001f40d\nlast\n"
    assert "Successfully wrote" in call("write_file", path=note, content=text)
    assert note.read_text(encoding="utf-8") == text
    assert call("read_text_file", path=note) == text
    assert call("read_file", path=note) == text
    assert client.call_tool("read_text_file", {"path": str(note), "head": 1}).text == "first"

    edits = {"path": str(note), "edits": [{"oldText": "first", "newText": "1st"}]}
    assert "+1st" in client.call_tool("edit_file", {**edits, "dryRun": True}).text
    assert note.read_text(encoding="utf-8") == text
    client.call_tool("edit_file", edits)
    assert note.read_text(encoding="utf-8").startswith("1st\n")

    call("create_directory", path=moved.parent)
    call("move_file", source=note, destination=moved)
    assert not note.exists() and moved.exists()
    assert call("list_directory", path=folder) == "[DIR] sub"
    assert "[FILE] moved.txt" in call("list_directory_with_sizes", path=moved.parent)
    assert '"name": "moved.txt"' in call("directory_tree", path=folder)
    assert call("search_files", path=folder, pattern="**/*.txt") == str(moved)
    assert "size: %d" % moved.stat().st_size in call("get_file_info", path=moved)
    assert call("list_allowed_directories") == "Allowed directories:\n%s" % folder
    both = client.call_tool("read_multiple_files", {"paths": [str(moved), str(note)]}).text
    assert "1st\n" in both and "%s: Error" % note in both


def test_a_large_file(client: mcpsync.Client, folder: Path) -> None:
    """More than a pipe holds, in both directions."""
    text = "0123456789abcde\n" * 65_536
    path = str(folder / "large.txt")
    client.call_tool("write_file", {"path": path, "content": text})
    assert client.call_tool("read_text_file", {"path": path}).text == text


@pytest.mark.parametrize(
    ("name", "kind"), [("dot.png", ImageContent), ("beep.wav", AudioContent), ("other.bin", EmbeddedResource)]
)
def test_media(client: mcpsync.Client, folder: Path, name: str, kind: Any) -> None:
    data = bytes(range(256))
    (folder / name).write_bytes(data)
    (block,) = client.call_tool("read_media_file", {"path": str(folder / name)}).content
    assert isinstance(block, kind)
    assert (block.resource if kind is EmbeddedResource else block).data_bytes == data
    assert base64.b64encode(data).decode() in (block.resource.blob if kind is EmbeddedResource else block.data)


def test_what_fails(client: mcpsync.Client, folder: Path) -> None:
    with pytest.raises(mcpsync.ToolError, match="ENOENT"):
        client.call_tool("read_text_file", {"path": str(folder / "missing.txt")})
    with pytest.raises(mcpsync.ToolError, match="Access denied") as caught:
        client.call_tool("read_text_file", {"path": str(folder.parent / "outside.txt")})
    assert caught.value.server == "files" and caught.value.result.is_error
    result = client.call_tool("write_file", {"path": str(folder / "x")}, check=False)
    assert result.is_error and "content" in result.text


def test_the_roots_decide(filesystem_command: Command, folder: Path) -> None:
    """The server gives up the folder of its command line for the client's roots, and follows their change."""
    side, first, second = Side(), folder / "first", folder / "second"
    for root in (first, second):
        root.mkdir()
        (root / "note.txt").write_text(root.name)
    side.roots = [first]

    def read(root: Path) -> str:
        return client.call_tool("read_text_file", {"path": str(root / "note.txt")}).text

    with side.connect(filesystem_command(folder.parent), stderr=side.tell("stderr")) as client:
        side.next("stderr", lambda line: "Updated allowed directories" in line)
        assert client.call_tool("list_allowed_directories").text.splitlines()[1:] == [str(first)]
        assert read(first) == "first"
        with pytest.raises(mcpsync.ToolError, match="Access denied"):
            read(second)
        side.roots = [second]
        client.roots_changed()
        side.next("stderr", lambda line: "Updated allowed directories" in line)
        assert read(second) == "second"
        with pytest.raises(mcpsync.ToolError, match="Access denied"):
            read(first)
