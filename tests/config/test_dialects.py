"""A complete file of every layout: what it comes to, and what is said about it, word for word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from mcpsync.config import Config, Policy, ServerConfig, load
from mcpsync.config.programs import BY_NAME
from tests.config.files_of_programs import FILES

ENVIRON = {"T": "t0k", "U": "u"}
#: Layouts that neither path nor root tell.
FORCED = ("fastmcp", "strands")

EXPECTED: Dict[str, Dict[str, Dict[str, Any]]] = {
    "claude-desktop": {
        "fs": {"transport": "stdio", "command": ("npx", "-y", "fs", "${T}"), "env": {"A": "1"}},
    },
    "claude-code": {
        "fs": {"transport": "stdio", "command": ("t0k", "u"), "env": {"K": "t0k"}, "timeout": 30.0},
        "api": {
            "transport": "http",
            "url": "https://a.example/t0k",
            "headers": {"X": "t0k"},
            "auth": {"client_id": "c", "callback_port": 8080, "scopes": ["a", "b"]},
            "headers_command": "bin/h",
        },
        "socket": {"transport": "auto", "url": "wss://a.example", "auth": {}, "enabled": False},
        "sse": {"transport": "sse", "url": "https://a.example/sse", "auth": {}},
    },
    "vscode": {
        "fs": {
            "transport": "stdio",
            "command": ("npx", "<top>/repo/x", "a", "t0k"),
            "env": {"FROM": "file", "P": "8"},
            "cwd": "<home>",
        },
        "api": {
            "transport": "http",
            "url": "https://a.example",
            "headers": {"K": "${input:key}"},
            "auth": {"client_id": "c"},
            "enabled": False,
        },
        "unix": {"transport": "http", "url": "unix:///run/s.sock#/mcp", "auth": {}},
        "asked": {"transport": "stdio", "command": ("x", "${input:run}"), "enabled": False},
    },
    "copilot": {
        "fs": {"transport": "stdio", "command": ("x",)},
        "api": {"transport": "sse", "url": "https://a.example", "auth": {}, "tools_include": ("one",)},
    },
    "cursor": {
        "fs": {"transport": "stdio", "command": ("x", "repo/t0k"), "env": {"FROM": "file"}},
        "api": {
            "transport": "auto",
            "url": "https://a.example",
            "headers": {"K": "u"},
            "auth": {"client_id": "c", "client_secret": "s", "scopes": ["a"]},
        },
    },
    "windsurf": {
        "api": {
            "transport": "auto",
            "url": "https://a.example",
            "headers": {"K": "FROM=file"},
            "auth": {},
            "tools_exclude": ("q",),
        },
        "fs": {"transport": "stdio", "command": ("x",), "env": {"A": "${env:T}", "B": "${T}"}, "enabled": False},
    },
    "zed": {
        "old": {"transport": "stdio", "command": ("x", "y"), "env": {"A": "b"}},
        "fs": {"transport": "stdio", "command": ("x",), "timeout": 20.0},
        "api": {
            "transport": "auto",
            "url": "https://a.example",
            "auth": {"client_id": "c", "client_secret": "s"},
            "enabled": False,
        },
    },
    "gemini": {
        "fs": {
            "transport": "stdio",
            "command": ("x", "t0k", "t0k", ""),
            "timeout": 1.5,
            "tools_include": ("a",),
            "tools_exclude": ("b",),
        },
        "api": {"transport": "http", "url": "https://a.example", "auth": {}, "enabled": False, "timeout": 600},
        "other": {"transport": "sse", "url": "https://a.example", "auth": {}, "enabled": False, "timeout": 600},
    },
    "codex": {
        "fs": {
            "transport": "stdio",
            "command": ("x", "y"),
            "env": {"T": "t0k", "U": "u", "A": "b"},
            "timeout": 1.5,
            "connect_timeout": 2.5,
            "tools_include": ("a",),
            "tools_exclude": ("b",),
        },
        "api": {
            "transport": "auto",
            "url": "https://a.example",
            "headers": {"X": "y", "Z": "u"},
            "auth": {"client_id": "c", "scopes": ["s"]},
            "timeout": 60,
            "connect_timeout": 10,
            "supports_parallel": False,
        },
        "token": {
            "transport": "auto",
            "url": "https://a.example",
            "auth": {},
            "enabled": False,
            "timeout": 60,
            "connect_timeout": 10,
            "supports_parallel": False,
        },
        "inline": {
            "transport": "auto",
            "url": "https://a.example",
            "auth": {},
            "enabled": False,
            "timeout": 60,
            "connect_timeout": 10,
            "supports_parallel": False,
        },
    },
    "goose": {
        "developer": {"enabled": False},
        "fs": {"transport": "stdio", "command": ("npx", "-y", "$T"), "env": {"T": "t0k", "A": "$T"}, "timeout": 20.0},
        "api": {
            "transport": "http",
            "url": "https://a.example/mcp",
            "headers": {"K": "Bearer t0k"},
            "auth": {},
            "timeout": 300,
        },
        "unix": {"transport": "http", "url": "http+unix://%2Frun%2Fs.sock/mcp?a=1", "auth": {}, "timeout": 300},
        "abstract": {"transport": "http", "url": "http://localhost/mcp", "auth": {}, "enabled": False, "timeout": 300},
    },
    "continue": {
        "fs": {"transport": "stdio", "command": ("x", "y"), "env": {"K": "t0k"}, "connect_timeout": 2.5},
        "api": {"transport": "http", "url": "https://a.example", "headers": {"X": "y", "Authorization": "Bearer t0k"}},
    },
    "opencode": {
        "fs": {"transport": "stdio", "command": ("npx", "-y", "fs"), "env": {"A": "t0k"}},
        "api": {"transport": "http", "url": "https://a.example", "enabled": False, "connect_timeout": 2.5},
    },
    "cline": {
        "fs": {"transport": "stdio", "command": ("x",), "timeout": 20.0},
        "new": {"transport": "http", "url": "https://a.example", "headers": {"A": "b"}, "auth": {}, "timeout": 60},
        "old": {"transport": "http", "url": "https://a.example/sse", "auth": {}, "timeout": 60},
        "untyped": {"transport": "auto", "url": "https://a.example/sse", "auth": {}, "timeout": 60},
    },
    "roo": {
        "fs": {"transport": "stdio", "command": ("x",), "env": {"A": "t0k"}, "timeout": 60, "tools_exclude": ("b",)},
        "api": {"transport": "http", "url": "https://a.example", "auth": {}, "timeout": 60},
    },
    "kiro": {
        "fs": {"transport": "stdio", "command": ("x",), "env": {"A": "t0k"}, "tools_exclude": ("b",)},
    },
    "inspector": {
        "fs": {
            "transport": "stdio",
            "command": ("x",),
            "cwd": "/",
            "timeout": 1.5,
            "connect_timeout": 2.5,
            "protocol": "modern",
        },
        "api": {"transport": "http", "url": "https://a.example", "auth": {"client_id": "c", "parameters": {"a": "b"}}},
    },
    "fastmcp": {
        "fs": {"transport": "stdio", "command": ("x",), "cwd": "/", "timeout": 1.5},
        "api": {"transport": "http", "url": "https://a.example", "auth": {}},
        "token": {"transport": "auto", "url": "https://a.example/sse", "headers": {"Authorization": "Bearer t0k"}},
    },
    "strands": {
        "fs": {
            "transport": "stdio",
            "command": ("x", "t0k", "u"),
            "connect_timeout": 5.0,
            "tools_include": ("a",),
            "tools_exclude": ("b",),
        },
        "api": {"transport": "sse", "url": "https://a.example", "auth": {}, "enabled": False},
    },
    "tools.mcp_servers": {
        "fs": {
            "transport": "stdio",
            "command": ("x", "$T"),
            "env": {"A": "t0k", "B": "u"},
            "timeout": 20.0,
            "connect_timeout": 5.0,
            "tools_include": ("a",),
            "tools_exclude": ("b",),
            "trust_level": "trusted",
            "env_mode": "inherit",
        },
        "api": {
            "transport": "auto",
            "url": "https://a.example",
            "headers": {"K": "Bearer t0k"},
            "auth": {},
            "timeout": 120,
            "connect_timeout": 60,
            "env_mode": "inherit",
        },
        "off it": {"enabled": False},
        "long": {
            "transport": "stdio",
            "command": ("x",),
            "enabled": False,
            "timeout": 3601.0,
            "connect_timeout": 60,
            "env_mode": "inherit",
        },
        "both": {
            "transport": "stdio",
            "command": ("x",),
            "url": "https://a.example",
            "auth": {},
            "enabled": False,
            "timeout": 120,
            "connect_timeout": 60,
            "env_mode": "inherit",
        },
        "missing": {
            "transport": "stdio",
            "command": ("x",),
            "env": {"K": "${NOT_SET} $NOR_THIS"},
            "enabled": False,
            "timeout": 120,
            "connect_timeout": 60,
            "env_mode": "inherit",
        },
        "idle": {"enabled": False, "timeout": 120, "connect_timeout": 60, "env_mode": "inherit"},
    },
    "servers": {
        "fs": {
            "transport": "stdio",
            "command": ("x", "y"),
            "env": {"A": "b"},
            "timeout": 20.0,
            "connect_timeout": 5.0,
            "keepalive": 0.0,
            "idle_disconnect": 60.0,
            "supports_parallel": False,
            "skip_preflight": True,
        },
        "api": {
            "transport": "http",
            "url": "https://a.example",
            "headers": {"K": "v"},
            "auth": {},
            "timeout": 300,
            "connect_timeout": 60,
            "keepalive": 180,
        },
        "streamed": {
            "transport": "http",
            "url": "https://a.example",
            "auth": {},
            "timeout": 300,
            "connect_timeout": 60,
            "keepalive": 180,
        },
        "untyped": {
            "transport": "auto",
            "url": "https://a.example",
            "auth": {},
            "timeout": 300,
            "connect_timeout": 60,
            "keepalive": 180,
        },
    },
    "mcpServers": {
        "fs": {"transport": "stdio", "command": ("x",), "env_mode": "inherit", "protocol": "2025-06-18"},
        "api": {
            "transport": "auto",
            "url": "https://a.example",
            "auth": {},
            "trust_level": "trusted",
            "headers_command": "h",
        },
    },
}


def said() -> Dict[str, List[str]]:
    """The diagnostics that are expected, by layout."""
    found: Dict[str, List[str]] = {}
    for line in (Path(__file__).parent / "diagnostics.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            found[line[3:]] = current = []
        else:
            current.append(line)
    return found


def written(folder: Path, name: str) -> Path:
    path = folder.joinpath(*FILES[name][0].split("/"))
    path.parent.mkdir(parents=True)
    path.write_text(FILES[name][1], encoding="utf-8")
    for each in ("repo", "home"):
        (folder / each).mkdir(exist_ok=True)
        (folder / each / ".env").write_text("FROM=file\n")
    return path


def loaded(path: Path, name: str, **options: Any) -> Config:
    return load(path, environ=ENVIRON, dialect=name if name in FORCED else None, **options)


def test_every_layout_has_a_file() -> None:
    assert list(FILES) and set(FILES) == set(BY_NAME) == set(EXPECTED) == set(said())


@pytest.mark.parametrize("name", FILES)
def test_a_complete_file(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name)
    config = loaded(path, name)
    assert config.dialect == name
    shown = [str(each).replace(str(path), "F").replace(str(tmp_path), "<top>") for each in config.diagnostics]
    assert shown == said()[name]
    home = os.path.expanduser("~")
    for server in config.servers.values():
        expected = ServerConfig(server.name, **EXPECTED[name][server.name])
        for field, value in vars(expected).items():
            found = getattr(server, field)
            if field == "error":
                assert (found is None) or not server.enabled
            else:
                shown_value = repr(found).replace(str(tmp_path), "<top>")
                assert shown_value == repr(value).replace("<home>", home), (server.name, field)
    assert list(config.servers) == list(EXPECTED[name])


@pytest.mark.parametrize("name", FILES)
def test_the_layout_can_be_named(tmp_path: Path, name: str) -> None:
    """By whoever has the file at another place."""
    suffix = Path(FILES[name][0]).suffix
    path = tmp_path / ("copy" + suffix)
    path.write_text(FILES[name][1], encoding="utf-8")
    assert load(path, environ=ENVIRON, dialect=name).dialect == name


def test_policy_of_the_first_reference_layout(tmp_path: Path) -> None:
    config = loaded(written(tmp_path, "tools.mcp_servers"), "tools.mcp_servers")
    assert config.policy == Policy(
        suspicious="warn",
        network="allow",
        profile="daemon",
        allow=("mcp__fs__a",),
        exclusive=True,
        approval="manual",
        elevated=True,
    )


def test_policy_where_that_layout_says_nothing() -> None:
    assert load({"tools": {"mcp_servers": {}}}).policy == Policy(network="deny")
    assert load({"mcpServers": {}}).policy == Policy()


@pytest.mark.parametrize(
    ("said_there", "message", "policy"),
    [
        (
            {"tools": {"mcpSecurityPolicy": "off"}},
            "tools.mcpSecurityPolicy: must be one of block, warn: taken as block",
            Policy(network="deny"),
        ),
        (
            {"execution": {"network_policy": True}},
            "execution.network_policy: must be one of deny, allow: taken as deny",
            Policy(network="deny"),
        ),
        (
            {"tools": {"profile": "demon"}},
            "tools.profile: must be one of interactive, personal_cli, daemon, public_gateway: taken as public_gateway",
            Policy(network="deny", profile="public_gateway"),
        ),
        (
            {"tools": {"allow": "all"}},
            'tools.allow: must be a list of names, as ["mcp__web__search"]: not used',
            Policy(network="deny", exclusive=True),
        ),
        (
            {"permissions": {"elevated": "yes"}},
            "permissions.elevated: must be true or false, and is a string: taken as false",
            Policy(network="deny"),
        ),
        (
            {"permissions": {"approval": {"mode": 5}}},
            "permissions.approval.mode: must be a word, and is a number: not used",
            Policy(network="deny"),
        ),
    ],
)
def test_what_is_not_understood_is_no_weaker_policy(said_there: Any, message: str, policy: Policy) -> None:
    data = {**said_there, "tools": {**said_there.get("tools", {}), "mcp_servers": {}}}
    config = load(data)
    assert [str(each.as_error()) for each in config.diagnostics] == [message]
    assert config.policy == policy


class TestDetection:
    def test_a_bare_map(self) -> None:
        config = load({"a": {"command": "x"}, "b": {"url": "https://a.example", "type": "http"}})
        assert (config.dialect, list(config.servers), config.diagnostics) == ("bare map", ["a", "b"], ())

    def test_a_root_that_other_programs_use_for_other_things(self) -> None:
        config = load({"extensions": {"theme": {}}, "mcp": {"allowed": []}, "mcpServers": {"a": {"command": "x"}}})
        assert (config.dialect, config.diagnostics) == ("mcpServers", ())

    def test_projects_of_one_file(self, tmp_path: Path) -> None:
        path = tmp_path / ".claude.json"
        text = '{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"a": {"command": "y"}}}}}'
        path.write_text(text)
        config = load(path)
        assert config.servers["a"].command == ("x",)
        assert [str(each) for each in config.diagnostics] == [
            "note: %s:1: projects./p.mcpServers: is for another folder: load with workspace= to use it" % path
        ]
        config = load(path, workspace="/p")
        assert (config.servers["a"].command, config.diagnostics) == (("y",), ())

    def test_a_description_from_the_registry(self) -> None:
        data = {
            "name": "io.example/files",
            "packages": [
                {
                    "registryType": "npm",
                    "identifier": "@a/b",
                    "version": "1.0",
                    "packageArguments": [{"type": "named", "name": "--root", "isRequired": True}],
                    "environmentVariables": [
                        {"name": "KEY", "isRequired": True},
                        {"name": "LEVEL", "default": "info"},
                        {"name": "MAYBE"},
                    ],
                }
            ],
        }
        server = load(data, environ={"KEY": "k", "ROOT": "/r"}).servers["files"]
        assert server.command == ("npx", "-y", "@a/b@1.0", "--root", "/r")
        assert server.env == {"KEY": "k", "LEVEL": "info"}
        remote = {"name": "x/y", "remotes": [{"type": "sse", "url": "https://{host}", "variables": {"host": {}}}]}
        server = load(remote, environ={"HOST": "a.example"}).servers["y"]
        assert (server.transport, server.url) == ("sse", "https://a.example")
        oci = {"name": "z", "packages": [{"registry_name": "oci", "name": "a/b", "version": "2"}]}
        assert load(oci).servers["z"].command == ("docker", "run", "-i", "--rm", "a/b:2")
