"""Reading: syntax errors with their place, encodings, repeated keys, hostile input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mcpsync.config import load
from mcpsync.errors import ConfigError

GOOD = '{"mcpServers": {"a": {"command": "x"}}}'


def failure(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.file == str(path)
    return caught.value


def written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    ("name", "content", "place", "message"),
    [
        ("a.json", '{\n  "mcpServers": {,}\n}', "line 2, column 18", "no valid JSON: expecting property name"),
        ("b.json", "", "line 1, column 1", "no valid JSON: expecting value"),
        ("c.yaml", "mcpServers:\n  a: {command: x\n", "line 3, column 1", "no valid YAML: expected"),
        ("d.yaml", "mcpServers:\n\ta: 1\n", "line 2, column 1", "no valid YAML: found character '\\t'"),
        ("e.yaml", "a: *sk-live-51HxQ\n", "line 1, column 4", "no valid YAML: found undefined alias '...'"),
        (
            "f.yaml",
            "a: !!python/object/apply:os.system [x]\n",
            "line 1, column 4",
            "no valid YAML: could not determine",
        ),
        ("g.yaml", "a: 1\n---\nb: 2\n", "line 2, column 1", "no valid YAML: but found another document"),
        ("h.yaml", "a: b\x01c\n", "line 1, column 5", "no valid YAML: a character that is not allowed"),
        ("i.json", b'{"a": "\n\xff"}', "line 2", "is no UTF-8 text"),
        ("j.json", '{"a": %s}' % ("9" * 5000), None, "no valid JSON: a number has too many digits"),
        ("k.yaml", "a: %s" % ("9" * 5000), None, "no valid YAML: a number has too many digits"),
        ("l.json", "[" * 100_000, None, "nested too deeply"),
        ("m.yaml", "[" * 800, None, "nested too deeply"),
        ("q.yaml", "? [a]\n: 1\n", "line 1, column 3", "no valid YAML: found unhashable key"),
        ("n.toml", "a = 1", None, "no servers found"),
        ("r.toml", "a = 1\nb = sk-live\n", "line 2, column 5", "no valid TOML: invalid value"),
        ("s.json", '{"a": 1,, "b": 2}', "line 1, column 9", "no valid JSON: expecting property name"),
        ("o.yaml", "", None, "must be a map with the key 'mcpServers', and is empty"),
        ("p.json", "[1]", None, "must be a map with the key 'mcpServers', and is a list"),
    ],
)
def test_broken_file(tmp_path: Path, name: str, content: Any, place: Any, message: str) -> None:
    if name[0] in "jk" and not hasattr(sys, "set_int_max_str_digits"):
        pytest.skip("this interpreter converts integers of any length")
    error = failure(written(tmp_path, name, content))
    assert error.path == place
    assert message in error.message
    assert "sk-live" not in str(error)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "there is no such file" in failure(tmp_path / "none.json").message
    assert "cannot be read: " in failure(tmp_path / ("n" * 5000)).message
    assert failure(tmp_path).message in ("is a folder, not a config file", "cannot be read: Permission denied")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, "mcp.json", GOOD.replace("x", "ü").encode(encoding))
    assert load(path).servers["a"].command == ("ü",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "x", "env": {"K": "1", "K": "2"}}}}'),
        ("a.yaml", 'mcpServers:\n  "a": {command: x}\n  a: {command: x, env: {K: "1", K: "2"}}\n'),
    ],
)
def test_repeated_keys(tmp_path: Path, name: str, content: str) -> None:
    config = load(written(tmp_path, name, content))
    assert config.servers["a"].env == {"K": "2"}
    found = sorted((diagnostic.path, diagnostic.severity) for diagnostic in config.diagnostics)
    assert found == [("mcpServers.a", "warning"), ("mcpServers.a.env.K", "warning")]
    assert "the last one counts" in str(config.diagnostics[0])


def test_repeated_keys_elsewhere_are_not_ours(tmp_path: Path) -> None:
    content = '{"theme": 1, "theme": 2, "tools": {"x": [{"y": 1, "y": 1}], "mcp_servers": {}}}'
    assert load(written(tmp_path, "a.json", content)).diagnostics == ()


def test_repeated_root_loses_servers_and_says_so(tmp_path: Path) -> None:
    content = '{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "x"}}}'
    config = load(written(tmp_path, "a.json", content))
    assert list(config.servers) == ["b"]
    assert [diagnostic.path for diagnostic in config.diagnostics] == ["mcpServers"]


def test_yaml_anchors_and_merge_keys(tmp_path: Path) -> None:
    content = """
defaults: &base {command: x, env: {A: "1"}, timeout: 5}
middle: &middle {<<: *base, timeout: 6}
mcpServers:
  a: {<<: *middle, timeout: 7}
  b: *middle
"""
    config = load(written(tmp_path, "mcp.yaml", content))
    assert [config.servers[name].timeout for name in "ab"] == [7, 6]
    assert config.diagnostics == ()


def test_yaml_that_refers_to_itself_or_grows_without_bound(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        "a%d: &a%d [%s]\n" % (n, n, ", ".join(["*a%d" % (n - 1)] * 9)) for n in range(1, 40)
    )
    loop = "loop: &loop [*loop]\nmcpServers: {a: {command: x, args: *a39}}\n"
    assert not load(written(tmp_path, "mcp.yaml", bomb + loop)).servers["a"].enabled


def test_plain_yaml_scalars_keep_their_text(tmp_path: Path) -> None:
    content = """
mcpServers:
  a:
    command: x
    enabled: yes
    args: [no, 1:30, 0755, 0x10, 2024-01-01, 1_000, +5, -5, true, .5, 1e3, "null"]
"""
    server = load(written(tmp_path, "mcp.yaml", content)).servers["a"]
    assert server.command[1:] == (
        ("no", "1:30", "0755", "0x10", "2024-01-01", "1_000", "+5", "-5", "true", ".5", "1e3", "null")
    )
    assert server.enabled
