"""The layouts of the programs that mcpsync reads the files of, each as data.

The order is that of detection by root: the first whose root a file has is taken, unless its path says more.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Mapping, Tuple

from mcpsync.config.dialects import COMMON, NO_UNIT, NOT_PERMISSION, PERMISSIONS, Dialect, spelled

__all__ = ["BARE", "BY_NAME", "DIALECTS", "PORTABLE"]

_MCP_SERVERS = (("mcpServers",),)
_SHELL: FrozenSet[str] = frozenset({"braced", "default"})
_VSCODE: FrozenSet[str] = frozenset({"env", "input", "folders"})
_NO_TIMEOUT: Mapping[str, str] = {"timeout": NO_UNIT, **PERMISSIONS}
_OAUTH = {"auth": "auth", "oauth": "oauth"}
_FILTERS = {**spelled(tools_include="tools_include", tools_exclude="tools_exclude")}
_SWITCHES = {"enabled": "enabled", "disabled": "disabled"}
_OWN = {
    **COMMON,
    **_OAUTH,
    **_SWITCHES,
    **_FILTERS,
    **spelled(
        connect_timeout="connect_timeout",
        trust_level="trust_level",
        env_mode="env_mode",
        env_file="env_file",
        keepalive_interval="keepalive",
        idle_timeout_seconds="idle_disconnect",
        max_lifetime_seconds="max_lifetime",
        supports_parallel="supports_parallel",
        skip_preflight="skip_preflight",
    ),
    "transport": "transport",
    "transportType": "type",
    "timeout": "timeout",
    "streamable": "streamable",
    "protocol": "protocol",
}
"""The keys of mcpsync itself; those of the second reference layout are among them."""

PORTABLE = Dialect(
    name="mcpServers",
    roots=_MCP_SERVERS,
    keys={
        **_OWN,
        "serverUrl": "url",
        "httpUrl": "url",
        "includeTools": "tools_include",
        "excludeTools": "tools_exclude",
        "disabledTools": "tools_exclude",
        "headersHelper": "headers_command",
    },
    forms=_SHELL | {"env", "input", "folders"},
)
BARE = Dialect(name="bare map", roots=((),), keys=PORTABLE.keys, forms=PORTABLE.forms)

_SECOND_REFERENCE = Dialect(
    name="servers",
    roots=(("servers",),),
    keys=_OWN,
    unused=frozenset({"dev"}),
    forms=_SHELL | {"env"},
    files=(".epoch/mcp.json",),
    timeout=300,
    connect_timeout=60,
    keepalive=180,
)
_FIRST_REFERENCE = Dialect(
    name="tools.mcp_servers",
    roots=(("tools", "mcp_servers"), ("tools", "mcpServers")),
    keys={**_OWN, "disabledTools": "tools_exclude", "includeTools": "tools_include", "excludeTools": "tools_exclude"},
    forms=_SHELL | {"env"},
    bare_variables=frozenset({"env", "headers"}),
    off_switch=("tools", "mcp", "enabled"),
    policies={
        "suspicious": (("tools", "mcp_security_policy"), ("tools", "mcpSecurityPolicy")),
        "network": (("execution", "network_policy"), ("execution", "networkPolicy")),
        "profile": (("tools", "profile"), ("security", "profile")),
        "allow": (("tools", "allow"), ("tools", "also_allow"), ("tools", "alsoAllow")),
        "deny": (("tools", "deny"),),
        "approval": (("permissions", "approval", "mode"),),
        "elevated": (("permissions", "elevated"),),
    },
    network="deny",
    strict_names=True,
    env_mode="inherit",
    timeout=120,
    connect_timeout=60,
    max_timeout=3600,
    max_connect_timeout=600,
)

_CLAUDE_CODE = Dialect(
    name="claude-code",
    roots=_MCP_SERVERS,
    projects=("projects",),
    files=("/.mcp.json", "/.claude.json", "/managed-mcp.json"),
    keys={**COMMON, **_OAUTH, "timeout": "timeout", "headersHelper": "headers_command"},
    milliseconds=frozenset({"timeout"}),
    least_timeout=1.0,
    forms=_SHELL,
    expanded=frozenset({"command", "args", "env", "url", "headers"}),
    transports={"ws": ""},
    remarks={**PERMISSIONS, "tools": NOT_PERMISSION},
)
_CLAUDE_DESKTOP = Dialect(
    name="claude-desktop", roots=_MCP_SERVERS, files=("/claude_desktop_config.json",), remarks=_NO_TIMEOUT
)
_COPILOT = Dialect(
    name="copilot",
    roots=_MCP_SERVERS,
    files=("/.copilot/mcp-config.json", "/.github/mcp.json"),
    keys={**COMMON, **_OAUTH, "tools": "tools_include"},
    remarks=_NO_TIMEOUT,
)
_CURSOR = Dialect(
    name="cursor",
    roots=_MCP_SERVERS,
    files=("/.cursor/mcp.json",),
    keys={**COMMON, **_OAUTH, "envFile": "env_file"},
    forms=frozenset({"env", "folders"}),
    remarks=_NO_TIMEOUT,
)
_WINDSURF = Dialect(
    name="windsurf",
    roots=_MCP_SERVERS,
    files=("/windsurf/mcp_config.json",),
    keys={**COMMON, **_OAUTH, "serverUrl": "url", "disabled": "disabled", "disabledTools": "tools_exclude"},
    forms=frozenset({"env", "file"}),
    remarks=_NO_TIMEOUT,
)
_GEMINI = Dialect(
    name="gemini",
    roots=_MCP_SERVERS,
    files=("/.gemini/settings.json",),
    keys={
        **COMMON,
        "oauth": "oauth",
        "httpUrl": "http_url",
        "timeout": "timeout",
        "includeTools": "tools_include",
        "excludeTools": "tools_exclude",
    },
    milliseconds=frozenset({"timeout"}),
    timeout=600,
    allowed=("mcp", "allowed"),
    excluded=("mcp", "excluded"),
    forms=frozenset({"braced", "bare", "percent"}),
    on_missing="empty",
    unused=frozenset({"authProviderType", "targetAudience", "targetServiceAccount", "tcp"}),
)
_CLINE = Dialect(
    name="cline",
    roots=_MCP_SERVERS,
    files=("/cline_mcp_settings.json",),
    keys={**COMMON, **_OAUTH, "disabled": "disabled", "timeout": "timeout", "transportType": "type"},
    nested={"transport": COMMON},
    timeout=60,
)
_ROO = Dialect(
    name="roo",
    roots=_MCP_SERVERS,
    files=("/mcp_settings.json", "/.roo/mcp.json"),
    keys={**COMMON, "disabled": "disabled", "timeout": "timeout", "disabledTools": "tools_exclude"},
    forms=frozenset({"env"}),
    unused=frozenset({"watchPaths"}),
    timeout=60,
)
_KIRO = Dialect(
    name="kiro",
    roots=_MCP_SERVERS,
    files=("/.kiro/settings/mcp.json",),
    keys={**COMMON, **_OAUTH, "disabled": "disabled", "disabledTools": "tools_exclude"},
    forms=frozenset({"braced"}),
    remarks=_NO_TIMEOUT,
)
_INSPECTOR = Dialect(
    name="inspector",
    roots=_MCP_SERVERS,
    files=("/.mcp-inspector/mcp.json",),
    keys={
        **COMMON,
        "oauth": "oauth",
        "connectionTimeout": "connect_timeout",
        "requestTimeout": "timeout",
        "protocolEra": "protocol",
    },
    milliseconds=frozenset({"connectionTimeout", "requestTimeout"}),
    unused=frozenset({"metadata", "roots", "taskTtl"}),
)
_FASTMCP = Dialect(
    name="fastmcp",
    roots=(("mcpServers",), ()),
    keys={**COMMON, "auth": "auth", "transport": "transport", "timeout": "timeout"},
    milliseconds=frozenset({"timeout"}),
    unused=frozenset({"authentication", "exclude_tags", "include_tags", "keep_alive", "tags", "tools", "transforms"}),
)
_STRANDS = Dialect(
    name="strands",
    roots=(("mcpServers",), ()),
    keys={
        **COMMON,
        "auth": "auth",
        "transport": "transport",
        "disabled": "disabled",
        "startup_timeout": "connect_timeout",
    },
    nested={"tool_filters": {"allowed": "tools_include", "rejected": "tools_exclude"}},
    forms=frozenset({"braced", "env"}),
    unused=frozenset({"continue_on_error", "prefix"}),
)
_VSCODE_FILES = Dialect(
    name="vscode",
    roots=(("servers",),),
    files=("/.vscode/mcp.json", "/code/user/mcp.json", "/code - insiders/user/mcp.json"),
    keys={**COMMON, **_OAUTH, "envFile": "env_file"},
    forms=_VSCODE,
    unused=frozenset({"dev", "sandbox", "sandboxEnabled"}),
    remarks=_NO_TIMEOUT,
)
_ZED = Dialect(
    name="zed",
    roots=(("context_servers",),),
    files=("/zed/settings.json", "/.zed/settings.json"),
    keys={**COMMON, "oauth": "oauth", "enabled": "enabled", "timeout": "timeout"},
    nested={"command": {"path": "command", "args": "args", "env": "env"}},
    unused=frozenset({"remote", "settings"}),
    remarks={**PERMISSIONS, "tool_permissions": NOT_PERMISSION},
    silent=frozenset({"source", "name", "description"}),
)
_CODEX = Dialect(
    name="codex",
    roots=(("mcp_servers",),),
    files=("/.codex/config.toml",),
    keys={
        **COMMON,
        "oauth": "oauth",
        "scopes": "scopes",
        "http_headers": "headers",
        "env_http_headers": "headers_from_env",
        "bearer_token_env_var": "token_from_env",
        "env_vars": "env_names",
        "enabled": "enabled",
        "enabled_tools": "tools_include",
        "disabled_tools": "tools_exclude",
        "startup_timeout_sec": "connect_timeout",
        "startup_timeout_ms": "connect_timeout",
        "tool_timeout_sec": "timeout",
        "supports_parallel_tool_calls": "supports_parallel",
        "bearer_token": "refused",
    },
    milliseconds=frozenset({"startup_timeout_ms"}),
    unused=frozenset({"oauth_resource", "required"}),
    remarks={"tools": NOT_PERMISSION, "default_tools_approval_mode": NOT_PERMISSION},
    parallel=False,
    timeout=60,
    connect_timeout=10,
)
_GOOSE = Dialect(
    name="goose",
    roots=(("extensions",),),
    files=("/goose/config.yaml",),
    keys={
        "type": "type",
        "cmd": "command",
        "args": "args",
        "envs": "env",
        "env_keys": "env_names",
        "cwd": "cwd",
        "uri": "url",
        "socket": "socket",
        "headers": "headers",
        "enabled": "enabled",
        "available_tools": "tools_include",
        "timeout": "timeout",
    },
    forms=frozenset({"bare"}),
    expanded=frozenset({"headers"}),
    written_types={"stdio": "stdio", "http": "streamable_http", "auto": "streamable_http", "sse": "sse"},
    own_kinds=frozenset({"builtin", "platform", "frontend", "inline_python"}),
    unused=frozenset({"bundled"}),
    silent=frozenset({"name", "description", "display_name"}),
    timeout=300,
)
_CONTINUE = Dialect(
    name="continue",
    roots=_MCP_SERVERS,
    list_root=True,
    files=("/.continue/config.yaml",),
    keys={**COMMON, "apiKey": "token", "connectionTimeout": "connect_timeout"},
    nested={"requestOptions": {"headers": "headers"}},
    milliseconds=frozenset({"connectionTimeout"}),
    forms=frozenset({"secrets"}),
)
_OPENCODE_KEYS: Dict[str, str] = {
    "type": "type",
    "command": "command",
    "environment": "env",
    "cwd": "cwd",
    "url": "url",
    "headers": "headers",
    "oauth": "oauth",
    **_SWITCHES,
}
_OPENCODE = Dialect(
    name="opencode",
    roots=(("mcp", "servers"), ("mcp",)),
    files=("/opencode.json", "/opencode.jsonc"),
    keys={**_OPENCODE_KEYS, "timeout": "connect_timeout"},
    command_list=True,
    written_types={"stdio": "local", "http": "remote", "sse": "remote", "auto": "remote"},
    milliseconds=frozenset({"timeout"}),
    forms=frozenset({"brace_env"}),
)

#: Those that a root tells, in the order of detection; then those that only a path, or the caller, can tell.
DIALECTS: Tuple[Dialect, ...] = (
    PORTABLE,
    _FIRST_REFERENCE,
    _SECOND_REFERENCE,
    _ZED,
    _CODEX,
    _GOOSE,
    _OPENCODE,
    *(_CLAUDE_CODE, _CLAUDE_DESKTOP, _VSCODE_FILES, _COPILOT, _CURSOR, _WINDSURF, _GEMINI, _CONTINUE),
    *(_CLINE, _ROO, _KIRO, _INSPECTOR, _FASTMCP, _STRANDS),
)

BY_NAME: Mapping[str, Dialect] = {dialect.name: dialect for dialect in DIALECTS}
