"""Edits in place: what they write, what they refuse, and that nothing is half written."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mcpsync.config import load
from mcpsync.config.edit import add_server, change_server, remove_server
from mcpsync.errors import ConfigError

ENTRY = {"command": "npx", "args": ["-y", "a b"], "env": {"K": "${K}"}}


def file(folder: Path, name: str, text: str) -> Path:
    path = folder.joinpath(*name.split("/"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


class TestWhatIsWritten:
    @pytest.mark.parametrize(
        ("name", "before", "after"),
        [
            (
                "one.json",
                '{"mcpServers": {"a": {"command": "x"}}}',
                '{"mcpServers": {"a": {"command": "x"}, '
                '"web": {"command": "npx", "args": ["-y", "a b"], "env": {"K": "${K}"}}}}',
            ),
            (
                "lines.json",
                '{\r\n\t"mcpServers": {\r\n\t\t"a": {} // about a\r\n\t\t// the end\r\n\t},\r\n\t"z": 1\r\n}',
                '{\r\n\t"mcpServers": {\r\n\t\t"a": {}, // about a\r\n\t\t"web": {\r\n\t\t\t"command": "npx",\r\n\t\t\t'
                '"args": ["-y", "a b"],\r\n\t\t\t"env": {\r\n\t\t\t\t"K": "${K}"\r\n\t\t\t}\r\n\t\t}\r\n\t\t// the end'
                '\r\n\t},\r\n\t"z": 1\r\n}',
            ),
            (
                "trailing.jsonc",
                '{"servers": {\n  "a": {}, // about a\n}}',
                '{"servers": {\n  "a": {}, // about a\n  "web": {\n    "command": "npx",\n    "args": ["-y", "a b"],\n'
                '    "env": {\n      "K": "${K}"\n    }\n  },\n}}',
            ),
            (
                "block.yaml",
                "# top\ntools:\n  mcp_servers: # here\n    a: {command: x} # about a\n\n# end\nz: 1\n",
                "# top\ntools:\n  mcp_servers: # here\n    a: {command: x} # about a\n    web:\n      command: npx\n"
                '      args: ["-y", "a b"]\n      env:\n        K: "${K}"\n\n# end\nz: 1\n',
            ),
            (
                "empty.yaml",
                "mcpServers: # none yet\nz: 1\n",
                'mcpServers: # none yet\n  web:\n    command: npx\n    args: ["-y", "a b"]\n    env:\n      K: "${K}"\n'
                "z: 1\n",
            ),
            (
                ".continue/config.yaml",
                "mcpServers:\n  - name: a\n    command: x\nz: 1\n",
                "mcpServers:\n  - name: a\n    command: x\n  - name: web\n    command: npx\n"
                '    args: ["-y", "a b"]\n    env:\n      K: "${K}"\nz: 1\n',
            ),
            ("nothing.yaml", "# only this", None),
        ],
    )
    def test_a_server_more(self, tmp_path: Path, name: str, before: str, after: Any) -> None:
        path = file(tmp_path, name, before)
        assert add_server(str(path), "web", ENTRY) == str(path)
        if after is not None:
            assert path.read_bytes().decode() == after
        server = load(path, environ={"K": "k"}).servers["web"]
        assert (server.command, list(server.env)) == (("npx", "-y", "a b"), ["K"])

    @pytest.mark.skipif(
        sys.version_info < (3, 11) and find_spec("tomli") is None, reason="the extra 'toml' is not installed"
    )
    def test_toml(self, tmp_path: Path) -> None:
        text = '# c\n[mcp_servers.a] # about a\ncommand = "x"\n\n[mcp_servers.a.env]\nA = "1"\n\n[z]\nk = 1\n'
        path = file(tmp_path, "config.toml", text)
        add_server(str(path), "web", ENTRY)
        added = '\n[mcp_servers.web]\ncommand = "npx"\nargs = ["-y", "a b"]\nenv = {K = "${K}"}\n'
        assert path.read_text() == text.replace("\n[z]", added + "\n[z]")
        change_server(str(path), "a", {"env": {"B": "2"}, "command": "y"})
        assert '[mcp_servers.a] # about a\ncommand = "y"\nenv = {B = "2"}\n\n[mcp_servers.web]' in path.read_text()
        remove_server(str(path), "a")
        assert path.read_text() == "# c\n" + added + "\n[z]\nk = 1\n"

    def test_a_file_that_was_not_there(self, tmp_path: Path) -> None:
        for name in ("new/mcp.json", "new.yaml"):
            path = tmp_path.joinpath(*name.split("/"))
            add_server(str(path), "web", ENTRY)
            assert list(load(path, environ={"K": ""}).servers) == ["web"]
            if sys.platform != "win32":
                assert path.stat().st_mode & 0o777 == 0o600

    def test_encoding_mode_and_links_stay(self, tmp_path: Path) -> None:
        path = file(tmp_path, "real.json", "")
        path.write_bytes('{"mcpServers": {"\u00e4": {}}}'.encode("utf-16"))
        os.chmod(path, 0o640)
        link = tmp_path / "link.json"
        link.symlink_to(path)
        assert add_server(str(link), "web", {"command": "\u00fc"}) == str(path)
        assert link.is_symlink()
        assert path.read_bytes().decode("utf-16") == '{"mcpServers": {"\u00e4": {}, "web": {"command": "\u00fc"}}}'
        assert path.stat().st_mode & 0o777 == 0o640
        assert sorted(os.listdir(tmp_path)) == ["link.json", "real.json"]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("text", "changes"),
        [
            ("x: &a {command: x}\nmcpServers:\n  a: *a\n", {"args": ["z"]}),
            ("x: &a {command: x}\nmcpServers:\n  a: *a\n", {"command": None}),
            ("base: &b\n  args: [y]\nmcpServers:\n  a:\n    <<: *b\n    command: x\n", {"args": None}),
            ("mcpServers:\n  a: &a {command: x}\n  b: *a\n", None),
        ],
    )
    def test_what_stands_at_another_place(self, tmp_path: Path, text: str, changes: Any) -> None:
        """An alias, a merged key, an anchor: the edit would reach other parts of the file."""
        path = file(tmp_path, "a.yaml", text)
        with pytest.raises(ConfigError, match=r"cannot be edited without touching other parts .*: change it by hand"):
            if changes is None:
                remove_server(str(path), "a")
            else:
                change_server(str(path), "a", changes)
        assert path.read_text() == text

    @pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 65, "\u00e4"])
    def test_a_name_that_is_no_part_of_a_tool_name(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError, match="a server's name is of letters, digits"):
            add_server(str(tmp_path / "mcp.json"), name, ENTRY)
        assert os.listdir(tmp_path) == []

    def test_servers_that_are_there_or_not(self, tmp_path: Path) -> None:
        path = file(tmp_path, "a.json", '{"mcpServers": {"web": {}}}')
        with pytest.raises(ConfigError, match="has a server 'web' already"):
            add_server(str(path), "web", ENTRY)
        with pytest.raises(ConfigError, match=r"has no server 'webb' \(did you mean 'web'\?\)"):
            change_server(str(path), "webb", {"command": "x"})

    def test_a_broken_file_is_left_alone(self, tmp_path: Path) -> None:
        path = file(tmp_path, "a.json", '{"mcpServers": {')
        with pytest.raises(ConfigError, match="no valid JSON"):
            add_server(str(path), "web", ENTRY)
        path.write_text('{"mcpServer": {}}')
        with pytest.raises(ConfigError, match="did you mean 'mcpServers'"):
            add_server(str(path), "web", ENTRY)
        path.write_text('{"mcpServers": "x"}')
        with pytest.raises(ConfigError, match="cannot be edited"):
            add_server(str(path), "web", ENTRY)
        assert os.listdir(tmp_path) == ["a.json"]

    @pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs permissions that hold")
    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        path = file(tmp_path, "a.json", '{"mcpServers": {}}')
        os.chmod(tmp_path, 0o500)
        try:
            with pytest.raises(ConfigError, match="cannot be written: Permission denied"):
                add_server(str(path), "web", ENTRY)
        finally:
            os.chmod(tmp_path, 0o700)
