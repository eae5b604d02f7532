"""Config files: layouts, fields, and what is said about what is wrong in them."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping

import pytest

from mcpsync.config import Config, ServerConfig, load
from mcpsync.errors import ConfigError


def load_one(body: Any, root: str = "mcpServers", environ: Mapping[str, str] = {}) -> ServerConfig:
    return load({root: {"web": body}}, environ=environ).servers["web"]


def remarks(config: Config, severity: str) -> List[str]:
    return [str(found.as_error()) for found in config.diagnostics if found.severity == severity]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestLayouts:
    def test_json_file_of_the_usual_layout(self, tmp_path: Path) -> None:
        body = {"command": "npx", "args": ["-y", "server"], "env": {"A": "1"}, "cwd": "/srv", "timeout": 30}
        path = write(tmp_path, "mcp.json", json.dumps({"mcpServers": {"fs": body}, "theme": "dark"}))
        config = load(path)
        assert config.source == str(path)
        assert config.diagnostics == ()
        assert config.servers["fs"] == ServerConfig(
            "fs", "stdio", ("npx", "-y", "server"), env={"A": "1"}, cwd="/srv", timeout=30.0
        )

    def test_yaml_file_with_the_servers_under_tools(self, tmp_path: Path) -> None:
        text = """
model: {name: some-model}
tools:
  mcp_servers:
    fs:
      command: npx
      args: [-y, server, --port, 8080]
      tools_include: [read_*]
      toolsExclude: [read_secret]
      trust_level: trusted
"""
        server = load(str(write(tmp_path, "agent.yaml", text))).servers["fs"]
        assert server.command == ("npx", "-y", "server", "--port", "8080")
        assert (server.tools_include, server.tools_exclude) == (("read_*",), ("read_secret",))
        assert server.trust_level == "trusted"
        assert (server.timeout, server.connect_timeout) == (120, 60)

    def test_servers_layout_has_its_own_defaults(self) -> None:
        server = load_one({"command": "x", "connectTimeout": 5}, root="servers")
        assert (server.timeout, server.connect_timeout) == (300, 5)

    def test_suffix_may_be_anything(self, tmp_path: Path) -> None:
        as_json = write(tmp_path, "one.conf", '{"servers": {"a": {"command": "x"}}}')
        as_yaml = write(tmp_path, "two.conf", "servers: {a: {command: x}}")
        assert load(as_json).servers == load(as_yaml).servers

    def test_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path, "mcp.json", '{"mcpServers": {}}')
        monkeypatch.setenv("USERPROFILE" if sys.platform == "win32" else "HOME", str(tmp_path))
        assert load("~/mcp.json").servers == {}

    def test_other_root_is_mentioned(self) -> None:
        config = load({"servers": {"b": {"command": "x"}}, "mcpServers": {"a": {"command": "x"}}})
        assert list(config.servers) == ["a"]
        assert remarks(config, "warning") == ["servers: is ignored: the servers are read from mcpServers"]

    @pytest.mark.parametrize(
        ("data", "nearest"),
        [
            ({"mcp_server": {}}, "mcpServers"),
            ({"mcpserver": {}}, "mcpServers"),
            ({"tools": {"mcp_server": {}}}, "tools.mcp_servers"),
            ({"colours": {}}, None),
            ({"tools": []}, None),
        ],
    )
    def test_no_root(self, data: Any, nearest: Any) -> None:
        with pytest.raises(ConfigError, match="no servers found: they are expected in mcpServers or tools") as caught:
            load(data)
        assert caught.value.nearest == nearest

    def test_list_of_servers_shows_the_right_form(self) -> None:
        with pytest.raises(ConfigError, match=r'mcpServers: must be a map .*\{"web": \{"command".* is a list'):
            load({"mcpServers": [{"name": "web", "command": "x"}]})

    def test_empty_root(self, tmp_path: Path) -> None:
        config = load(write(tmp_path, "mcp.yaml", "mcpServers:\n"))
        assert config.servers == {}
        assert remarks(config, "warning") == ["%s:1: mcpServers: is empty: there are no servers" % config.source]

    def test_off_switch_of_its_layout(self) -> None:
        data = {"tools": {"mcp": {"enabled": False}, "mcp_servers": {"a": {"command": "x"}, "b": "oops"}}}
        config = load(data)
        assert not any(server.enabled for server in config.servers.values())
        assert config.servers["a"].error is None
        assert remarks(config, "note") == ["tools.mcp.enabled: is false: every server is disabled"]

    def test_off_switch_of_a_wrong_type_starts_nothing(self) -> None:
        with pytest.raises(ConfigError, match=r"tools\.mcp\.enabled: must be true or false, and is a string"):
            load({"tools": {"mcp": {"enabled": "off"}, "mcp_servers": {"a": {"command": "x"}}}})


class TestFields:
    def test_command_as_a_list(self) -> None:
        assert load_one({"command": ["uvx", "server"], "args": ["-v"]}).command == ("uvx", "server", "-v")

    @pytest.mark.parametrize(
        ("body", "transport"),
        [
            ({"command": "x"}, "stdio"),
            ({"command": "x", "type": "local"}, "stdio"),
            ({"url": "https://a.example/mcp"}, "auto"),
            ({"url": "https://a.example/mcp", "type": "streamableHttp"}, "http"),
            ({"serverUrl": "https://a.example/mcp", "type": "stdio", "transport": "sse"}, "sse"),
        ],
    )
    def test_transport(self, body: Any, transport: str) -> None:
        server = load_one(body)
        assert server.error is None
        assert server.transport == transport

    def test_url_server(self) -> None:
        server = load_one({"url": "http://[::1]:8/mcp", "headers": {"X-Team": "${TEAM}"}}, environ={"TEAM": "blue"})
        assert (server.url, server.headers, server.command) == ("http://[::1]:8/mcp", {"X-Team": "blue"}, ())

    @pytest.mark.parametrize(
        ("body", "enabled"),
        [
            ({}, True),
            ({"enabled": False}, False),
            ({"disabled": True}, False),
            ({"enabled": True, "disabled": True}, False),
            ({"enabled": "off"}, False),
            ({"disabled": "no"}, True),
        ],
    )
    def test_switches(self, body: Any, enabled: bool) -> None:
        server = load_one({"command": "x", **body})
        assert server.error is None
        assert server.enabled is enabled

    def test_disabled_entry_may_be_incomplete(self) -> None:
        config = load({"mcpServers": {"web": {"disabled": True, "args": ["${NOT_SET}"], "timeout": -1}}}, environ={})
        server = config.servers["web"]
        assert (server.enabled, server.error) == (False, None)
        assert remarks(config, "warning") == ["mcpServers.web.timeout: must be a number of seconds above 0"]

    def test_empty_text_and_null_are_absent(self) -> None:
        server = load_one({"command": "x", "url": "", "cwd": "", "args": None, "type": None})
        assert server == ServerConfig("web", "stdio", ("x",))

    def test_plain_scalars_become_text(self) -> None:
        server = load_one({"command": "x", "args": [8080, True], "env": {"N": 7, "OFF": False}})
        assert server.command == ("x", "8080", "true")
        assert server.env == {"N": "7", "OFF": "false"}

    def test_config_pickles(self) -> None:
        config = load({"mcpServers": {"a": {"command": "x"}, "b": {}}})
        copied = pickle.loads(pickle.dumps(config))
        assert copied.servers["a"] == config.servers["a"]
        assert str(copied.servers["b"].error) == str(config.servers["b"].error)


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ("npx server", r'web: must be a map, as {"command": "npx".*, and is a string'),
            ({}, r"web: needs 'command' \(a program to start\) or 'url'$"),
            ({"comand": "x"}, r"web: needs 'command' .*: is 'comand' meant to be 'command'\?"),
            ({"command": "x", "url": "https://a.example"}, "web: has both 'command' and 'url'"),
            ({"command": {"x"}}, r"web\.command: must be the name of a program, or a list .*, and is a set"),
            ({"command": 5}, r"web\.command: must be the name of a program, or a list .*, and is a number"),
            ({"command": []}, r'web\.command: must begin with the name of a program, as \["npx"'),
            ({"command": ["", "x"]}, r"web\.command: must begin with the name of a program"),
            ({"command": "x\0y"}, r"web\.command: contains a NUL character"),
            ({"command": "x", "args": "-y server"}, r'args: must be a list of strings, as \["one", .* is a string'),
            ({"command": "x", "args": [None]}, r"args\[0\]: must be a string, and is empty: put it in quotes"),
            ({"command": "x", "args": ["a", 1.5]}, r"args\[1\]: must be a string, and is a number: put it in quotes"),
            ({"command": "x", "env": ["A=1"]}, r'env: must be a map, as {"NAME": "value"}, and is a list'),
            ({"command": "x", "env": {"A": ["1"]}}, r"env\.A: must be a string, and is a list"),
            ({"command": "x", "env": {"A=B": "1"}}, r"env\['A=B'\]: is no name for an environment variable"),
            ({"command": "x", "cwd": 3}, r"cwd: must be a string, and is a number"),
            ({"command": "x", "timeout": 0}, r"timeout: must be a number of seconds above 0"),
            ({"command": "x", "timeout": float("nan")}, r"timeout: must be a number of seconds above 0"),
            ({"command": "x", "timeout": float("inf")}, r"timeout: must be a number of seconds above 0"),
            ({"command": "x", "timeout": 10**400}, r"timeout: must be a number of seconds above 0"),
            ({"command": "x", "timeout": True}, r"timeout: must be a number of seconds, as 30, and is a boolean"),
            (
                {"command": "x", "connectTimeout": "5"},
                r"connectTimeout: must be a number of seconds, as 30, and is a str",
            ),
            ({"command": "x", "enabled": "maybe"}, r"enabled: must be true or false, and is a string"),
            ({"command": "x", "disabled": 1}, r"disabled: must be true or false, and is a number"),
            ({"command": "x", "tools_include": "read"}, r"tools_include: must be a list of strings"),
            (
                {"command": "x", "tools_exclude": ["a"], "disabledTools": ["b"]},
                r"disabledTools: says the same as 'tools",
            ),
            ({"command": "x", "trust_level": "full"}, r"trust_level: must be one of untrusted, trusted"),
            ({"command": "x", "trust_level": True}, r"trust_level: must be one of untrusted, trusted, and is a bool"),
            ({"command": "x", "type": "pigeon"}, r"type: must be one of stdio, http, sse"),
            ({"command": "x", "type": "http"}, r"type: is http, which goes with 'url'"),
            ({"url": "https://a.example", "type": "stdio"}, r"type: is stdio, which goes with 'command'"),
            ({"url": "file:///etc/passwd"}, r"url: must be an http or https URL with a host"),
            ({"url": "https://"}, r"url: must be an http or https URL with a host"),
            ({"url": "http://[::1"}, r"url: must be an http or https URL with a host"),
            ({"url": "https://a.example", "headers": {"A B": "x"}}, r"headers\['A B'\]: is no name for a header"),
            ({"url": "https://a.example", "headers": {"A": "x\r\nB: y"}}, r"headers\.A: contains a line break"),
            ({"command": "x", 5: "y"}, r"web\.5: a key must be a string"),
        ],
    )
    def test_bad_server_is_isolated(self, body: Any, message: str) -> None:
        config = load({"mcpServers": {"web": body, "good": {"command": "x"}}}, environ={})
        assert config.servers["good"] == ServerConfig("good", "stdio", ("x",))
        server = config.servers["web"]
        assert not server.enabled
        assert isinstance(server.error, ConfigError)
        assert server.error.server == "web"
        with pytest.raises(ConfigError, match=message):
            raise server.error
        assert remarks(config, "error")[0] == str(server.error)

    def test_everything_wrong_is_said_at_once(self) -> None:
        config = load({"mcpServers": {"web": {"command": "x", "args": 1, "env": 2, "timeout": 0}}})
        assert len(remarks(config, "error")) == 3

    @pytest.mark.parametrize(
        ("key", "nearest"),
        [
            ("comand", "command"),
            ("connect-timeout", "connect_timeout"),
            ("ToolsInclude", "tools_include"),
            ("environment", "env"),
            ("timeouts", "timeout"),
            ("qqqq", None),
        ],
    )
    def test_unknown_key_is_a_warning(self, key: str, nearest: Any) -> None:
        config = load({"mcpServers": {"web": {"command": "x", key: "1"}}})
        assert config.servers["web"].enabled
        (found,) = config.diagnostics
        assert (found.severity, found.path, found.message) == ("warning", "mcpServers.web." + key, "unknown key")
        assert (found.nearest, found.server) == (nearest, "web")

    def test_comment_keys_are_silent(self) -> None:
        body = {"command": "x", "_note": "", "//": "", "x-mine": 1, "description": "d"}
        assert load({"mcpServers": {"web": body}}).diagnostics == ()

    def test_permissions_of_other_programs_are_no_permission(self) -> None:
        config = load({"mcpServers": {"web": {"command": "x", "trust": True, "autoApprove": ["*"], "alwaysAllow": []}}})
        assert config.servers["web"].trust_level == "untrusted"
        assert len(remarks(config, "note")) == 3
        assert all("is not imported" in remark for remark in remarks(config, "note"))

    def test_keys_not_used_are_named(self) -> None:
        config = load({"servers": {"web": {"command": "x", "dev": {}, "headers": {"A": "b"}}}})
        assert remarks(config, "warning") == [
            "servers.web.dev: is known, but not used by this version",
            "servers.web.headers: is not used: headers are sent to a url only",
        ]
        config = load({"mcpServers": {"web": {"url": "https://a.example", "type": "http", "cwd": "/", "args": []}}})
        assert [found.path for found in config.diagnostics] == ["mcpServers.web.args", "mcpServers.web.cwd"]

    def test_command_line_in_one_string_is_doubted(self) -> None:
        config = load({"mcpServers": {"a": {"command": "npx -y server"}, "b": {"command": "/opt/my tools/run"}}})
        assert [found.path for found in config.diagnostics] == ["mcpServers.a.command"]
        assert config.servers["a"].command == ("npx -y server",)

    def test_milliseconds_are_doubted(self) -> None:
        config = load({"mcpServers": {"web": {"command": "x", "timeout": 60000}}})
        assert remarks(config, "warning") == ["mcpServers.web.timeout: is in seconds: 60000 s is more than an hour"]

    @pytest.mark.parametrize(("key", "most"), [("timeout", 3600), ("connect_timeout", 600)])
    def test_bounds_of_a_layout(self, key: str, most: int) -> None:
        servers = {"in": {"command": "x", key: most}, "out": {"command": "x", key: most + 1}}
        config = load({"tools": {"mcp_servers": servers}})
        assert config.servers["in"].enabled
        assert remarks(config, "error") == ["tools.mcp_servers.out.%s: must be at most %d seconds" % (key, most)]

    def test_names_of_the_layout_that_bounds_them(self) -> None:
        names = ["a", "A-1.b_2", "a b", "a/b", "\u00e4"]
        config = load({"tools": {"mcp_servers": {name: {"command": "x"} for name in names}}})
        assert [name for name in names if config.servers[name].enabled] == ["a", "A-1.b_2"]
        assert "letters, digits, '.', '-' and '_'" in str(config.servers["a/b"].error)

    @pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[0m", "a\x00", "a\u2028b", "\ud800"])
    def test_names_that_spoil_a_terminal(self, name: str) -> None:
        config = load({"mcpServers": {name: {"command": "x"}, "good": {"command": "x"}}})
        assert config.servers["good"].enabled
        assert not config.servers[name].enabled
        assert "a server's name must not" in str(config.servers[name].error)
        assert str(config.servers[name].error).isprintable()

    @pytest.mark.parametrize("name", ["日本", "my server", "a__b", "x" * 200, "дом/1"])
    def test_names_of_any_other_kind(self, name: str) -> None:
        assert load({"mcpServers": {name: {"command": "x"}}}).servers[name].enabled

    def test_name_that_is_no_string(self, tmp_path: Path) -> None:
        config = load(write(tmp_path, "mcp.yaml", "mcpServers:\n  5: {command: x}\n  good: {command: x}\n"))
        assert list(config.servers) == ["good"]
        assert "mcpServers.5: a server's name must be a string: put it in quotes" in remarks(config, "error")[0]


class TestExpansion:
    """FAULTS.md H6."""

    ENVIRON: ClassVar[Dict[str, str]] = {"TOKEN": "t0k", "NESTED": "${TOKEN} $TOKEN", "EMPTY": ""}

    def test_every_field_that_has_it(self) -> None:
        body = {"command": "${TOKEN}", "args": ["-${env:TOKEN}-"], "env": {"A": "${NO:-d}"}, "cwd": "/${TOKEN}"}
        server = load_one(body, environ=self.ENVIRON)
        assert server == ServerConfig("web", "stdio", ("t0k", "-t0k-"), env={"A": "d"}, cwd="/t0k")
        server = load_one({"url": "https://${TOKEN}.example", "headers": {"A": "${TOKEN}"}}, environ=self.ENVIRON)
        assert (server.url, server.headers) == ("https://t0k.example", {"A": "t0k"})

    @pytest.mark.parametrize(
        ("text", "expanded"),
        [
            ("${NESTED}", "${TOKEN} $TOKEN"),
            ("${NO:-${TOKEN}", "${TOKEN"),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", ""),
            ("${NO:-}", ""),
            ("$TOKEN", "$TOKEN"),
            ("$$ $5 ${} ${1} ${x y} $", "$$ $5 ${} ${1} ${x y} $"),
        ],
    )
    def test_one_pass(self, text: str, expanded: str) -> None:
        server = load_one({"command": "x", "args": [text]}, environ=self.ENVIRON)
        assert server.error is None
        assert server.command[1] == expanded

    def test_bare_variables_only_where_the_layout_has_them(self) -> None:
        body = {"command": "x", "args": ["$TOKEN"], "env": {"A": "$TOKEN!"}}
        server = load({"tools": {"mcp_servers": {"a": body}}}, environ=self.ENVIRON).servers["a"]
        assert (server.command, server.env) == (("x", "$TOKEN"), {"A": "t0k!"})

    def test_bare_variable_elsewhere_is_noted(self) -> None:
        config = load(
            {"mcpServers": {"web": {"command": "x", "env": {"A": "$TOKEN", "B": "$ecret"}}}}, environ=self.ENVIRON
        )
        assert remarks(config, "note") == [
            "mcpServers.web.env.A: $TOKEN is taken as it stands here: a variable is ${TOKEN}"
        ]

    def test_missing_variable_disables_its_server_only(self) -> None:
        servers = {"web": {"command": "x", "env": {"KEY": "${B}${A}${B}"}}, "good": {"command": "x"}}
        config = load({"mcpServers": servers}, environ={})
        assert config.servers["good"].enabled
        assert str(config.servers["web"].error) == (
            "mcpServers.web.env.KEY: server 'web' needs a variable that is not set: B, A; "
            "set it, or give a default as ${B:-...}"
        )

    @pytest.mark.parametrize("form", ["file:/run/secret", "command:pick", "config:x"])
    def test_forms_that_only_another_program_can_fill(self, form: str) -> None:
        server = load_one({"command": "x", "args": ["${%s}" % form]})
        assert "${%s} can only be filled by the program" % form in str(server.error)

    def test_process_environment_is_the_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCPSYNC_TEST_VALUE", "here")
        server = load({"mcpServers": {"a": {"command": "${MCPSYNC_TEST_VALUE}"}}}).servers["a"]
        assert server.command == ("here",)

    def test_expanded_value_is_checked(self) -> None:
        server = load_one({"url": "https://a.example", "headers": {"A": "${V}"}}, environ={"V": "x\nB: y"})
        assert "headers.A: contains a line break" in str(server.error)


class TestSecrets:
    SECRET = "sk-live-51HxQ"

    def test_no_value_is_shown(self) -> None:
        secret = self.SECRET
        servers = {
            "a": {"command": "x", "args": ["--key", secret], "env": {"KEY": secret, "K=": secret}, "typo": secret},
            "b": {"url": "https://u:%s@a.example/%s?k=%s" % (secret, secret, secret), "headers": {"A": secret}},
            "c": {"url": secret, "headers": secret, "timeout": secret, "enabled": secret, "type": secret},
            "d": {"command": {secret: secret}, "trust_level": secret, "args": secret, "env": secret},
            "e": {"url": "http://[%s" % secret, "enabled": False},
            "f": secret,
        }
        config = load({"mcpServers": servers})
        shown = repr(config) + "".join(map(str, config.diagnostics))
        shown += "".join(str(server.error) + repr(server.error) for server in config.servers.values())
        assert secret not in shown
        assert "ServerConfig('a', stdio, 'x', 2 arguments" in shown
        assert "ServerConfig('b', auto, 'https://a.example', headers=['A'], error=" in shown

    def test_repr_tells_what_is_off(self) -> None:
        assert repr(load_one({"command": "x", "disabled": True})) == "ServerConfig('web', stdio, 'x', disabled)"
        assert repr(load_one({})).startswith("ServerConfig('web', unknown, '', error=\"mcpServers.web: needs")
