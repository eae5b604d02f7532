"""A file of every layout, with its odd keys: path, text. Values of ``T`` and ``U`` come from the environment."""

from __future__ import annotations

from typing import Dict, Tuple

FILES: Dict[str, Tuple[str, str]] = {
    "claude-desktop": (
        "Claude/claude_desktop_config.json",
        """{"mcpServers": {
  "fs": {"command": "npx", "args": ["-y", "fs", "${T}"], "env": {"A": "1"}, "timeout": 5}
}, "globalShortcut": "x"}""",
    ),
    "claude-code": (
        "repo/.mcp.json",
        """{"mcpServers": {
  "fs": {"type": "stdio", "command": "${T:-npx}", "args": ["${U:-d}"], "env": {"K": "${T}"}, "timeout": 30000},
  "api": {"type": "http", "url": "https://a.example/${T}", "headers": {"X": "${T}"}, "headersHelper": "bin/h",
    "timeout": 500, "oauth": {"clientId": "c", "callbackPort": 8080, "scopes": "a b"}, "alwaysLoad": true},
  "socket": {"type": "ws", "url": "wss://a.example"},
  "sse": {"type": "sse", "url": "https://a.example/sse", "tools": [{"name": "q", "permission_policy": "allow"}]}
}}""",
    ),
    "vscode": (
        "repo/.vscode/mcp.json",
        """// servers
{
  "inputs": [
    {"type": "promptString", "id": "key", "password": true},
    {"type": "pickString", "id": "level", "options": ["a", {"label": "B", "value": "b"}], "default": "a"},
    {"type": "command", "id": "run", "command": "ext.run"},
    {"type": "guess", "id": "no"},
  ],
  "servers": {
    "fs": {"type": "stdio", "command": "npx", "args": ["${workspaceFolder}/x", "${input:level}", "${env:T}"],
      "cwd": "${userHome}", "envFile": "${workspaceFolder}/.env", "env": {"N": null, "P": 8}, "dev": {"watch": "*"}},
    "api": {"type": "http", "url": "https://a.example", "headers": {"K": "${input:key}"},
      "oauth": {"clientId": "c"}},
    "unix": {"type": "http", "url": "unix:///run/s.sock#/mcp"},
    "asked": {"command": "x", "args": ["${input:run}"]},
  },
}""",
    ),
    "copilot": (
        "home/.copilot/mcp-config.json",
        """{"mcpServers": {
  "fs": {"type": "local", "command": "x", "args": [], "tools": ["*"]},
  "api": {"type": "sse", "url": "https://a.example", "tools": ["one"]}
}}""",
    ),
    "cursor": (
        "repo/.cursor/mcp.json",
        """{"mcpServers": {
  "fs": {"type": "stdio", "command": "x", "args": ["${workspaceFolderBasename}${/}${env:T}"], "envFile": "../.env"},
  "api": {"url": "https://a.example", "headers": {"K": "${env:U}"},
    "auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "s", "scopes": ["a"]}}
}}""",
    ),
    "windsurf": (
        "home/.codeium/windsurf/mcp_config.json",
        """{"mcpServers": {
  "api": {"serverUrl": "https://a.example", "headers": {"K": "${file:../../.env}"}, "disabledTools": ["q"]},
  "fs": {"command": "x", "env": {"A": "${env:T}", "B": "${T}"}, "disabled": true}
}}""",
    ),
    "zed": (
        "home/.config/zed/settings.json",
        """{
  // everything else
  "theme": "One",
  "context_servers": {
    "old": {"source": "custom", "command": {"path": "x", "args": ["y"], "env": {"A": "b"}}, "settings": {}},
    "fs": {"command": "x", "args": [], "env": {}, "timeout": 20, "tool_permissions": {"mcp:fs:q": "allow"}},
    "api": {"url": "https://a.example", "oauth": {"client_id": "c", "client_secret": "s"}, "enabled": false},
  },
}""",
    ),
    "gemini": (
        "home/.gemini/settings.json",
        """{"mcp": {"allowed": ["fs", "api"], "excluded": ["api"], "serverCommand": "x"}, "mcpServers": {
  "fs": {"command": "x", "args": ["$T", "${T}", "$NOT_SET"], "timeout": 1500, "trust": true,
    "includeTools": ["a"], "excludeTools": ["b"]},
  "api": {"httpUrl": "https://a.example"},
  "other": {"url": "https://a.example", "type": "sse", "authProviderType": "x"}
}}""",
    ),
    "codex": (
        "home/.codex/config.toml",
        """model = "m" # a comment

[mcp_servers.fs]
command = "x"
args = ["y"]
env_vars = ["T", {name = "U", source = "local"}, "NOT_SET"]
startup_timeout_ms = 2500
tool_timeout_sec = 1.5
enabled_tools = ["a"]
disabled_tools = ["b"]
supports_parallel_tool_calls = true
required = true
default_tools_approval_mode = "auto"

[mcp_servers.fs.env]
A = "b"

[mcp_servers.fs.tools.a]
approval_mode = "approve"

[mcp_servers.api]
url = "https://a.example"
http_headers = {X = "y"}
env_http_headers = {Z = "U"}
scopes = ["s"]
oauth = {client_id = "c"}
enabled = true

[mcp_servers.token]
url = "https://a.example"
bearer_token_env_var = "NOT_SET"

[mcp_servers.inline]
url = "https://a.example"
bearer_token = "t"
""",
    ),
    "goose": (
        "home/.config/goose/config.yaml",
        """# goose
extensions:
  developer: {type: builtin, name: developer, bundled: true, enabled: true}
  fs:
    type: stdio
    cmd: npx
    args: [-y, $T]
    envs: {A: $T}
    env_keys: [T]
    timeout: 20
    available_tools: []
  api:
    type: streamable_http
    uri: https://a.example/mcp
    headers: {K: Bearer $T}
  unix:
    type: streamable_http
    uri: http://localhost/mcp?a=1
    socket: /run/s.sock
  abstract: {type: streamable_http, uri: "http://localhost/mcp", socket: "@name"}
""",
    ),
    "continue": (
        "home/.continue/config.yaml",
        """mcpServers:
  - name: fs
    command: x
    args: [y]
    env: {K: "${{ secrets.T }}"}
    connectionTimeout: 2500
  - name: api
    type: streamable-http
    url: https://a.example
    apiKey: ${{ secrets.T }}
    requestOptions: {headers: {X: y}, timeout: 5}
  - command: z
""",
    ),
    "opencode": (
        "repo/opencode.jsonc",
        """{ "mcp": {
  "fs": {"type": "local", "command": ["npx", "-y", "fs"], "environment": {"A": "{env:T}"}, "enabled": true},
  "api": {"type": "remote", "url": "https://a.example", "oauth": false, "disabled": true, "timeout": 2500},
}}""",
    ),
    "cline": (
        "Code/User/cline_mcp_settings.json",
        """{"mcpServers": {
  "fs": {"command": "x", "disabled": false, "autoApprove": ["a"], "timeout": 20},
  "new": {"transport": {"type": "streamableHttp", "url": "https://a.example", "headers": {"A": "b"}}},
  "old": {"url": "https://a.example/sse", "transportType": "http"},
  "untyped": {"url": "https://a.example/sse"}
}}""",
    ),
    "roo": (
        "repo/.roo/mcp.json",
        """{"mcpServers": {
  "fs": {"command": "x", "env": {"A": "${env:T}"}, "alwaysAllow": ["a"], "watchPaths": ["p"], "disabledTools": ["b"]},
  "api": {"type": "streamable-http", "url": "https://a.example"}
}}""",
    ),
    "kiro": (
        "repo/.kiro/settings/mcp.json",
        """{"mcpServers": {
  "fs": {"command": "x", "env": {"A": "${T}"}, "disabled": false, "autoApprove": ["*"], "disabledTools": ["b"],
    "timeout": 5}
}}""",
    ),
    "inspector": (
        "home/.mcp-inspector/mcp.json",
        """{"mcpServers": {
  "fs": {"command": "x", "cwd": "/", "connectionTimeout": 2500, "requestTimeout": 1500, "protocolEra": "modern"},
  "api": {"type": "http", "url": "https://a.example", "roots": [], "metadata": {}, "taskTtl": 5,
    "oauth": {"clientId": "c", "authorizationParams": {"a": "b"}, "enterpriseManaged": true}}
}}""",
    ),
    "fastmcp": (
        "repo/servers.json",
        """{
  "fs": {"command": "x", "keep_alive": false, "timeout": 1500, "cwd": "/"},
  "api": {"url": "https://a.example", "transport": "streamable-http", "auth": "oauth"},
  "token": {"url": "https://a.example/sse", "auth": "t0k", "tags": ["a"]}
}""",
    ),
    "strands": (
        "repo/agent.json",
        """{"mcpServers": {
  "fs": {"command": "x", "args": ["${T}", "${env:U}"], "startup_timeout": 5, "continue_on_error": true,
    "tool_filters": {"allowed": ["a"], "rejected": ["b"]}, "prefix": "p"},
  "api": {"transport": "sse", "url": "https://a.example", "disabled": true}
}}""",
    ),
    "tools.mcp_servers": (
        "repo/echo-agent.yaml",
        """execution:
  networkPolicy: allow
permissions:
  approval: {mode: manual}
  elevated: true
tools:
  profile: daemon
  allow: [mcp__fs__a]
  mcpSecurityPolicy: warn
  mcp: {enabled: true}
  mcp_servers:
    fs:
      command: "x"
      args: ["$T"]
      env: {A: $T, B: "${U}"}
      toolsInclude: [a]
      tools_exclude: [b]
      trust_level: trusted
      timeout: 20
      connectTimeout: 5
    api:
      url: "https://a.example"
      headers: {K: "Bearer ${T}"}
      auth: oauth
    "off it": {command: x}
    long: {command: x, timeout: 3601}
    both: {command: x, url: "https://a.example"}
    missing: {command: x, env: {K: "${NOT_SET} $NOR_THIS"}}
    idle: {enabled: false}
""",
    ),
    "servers": (
        "home/.epoch/mcp.json",
        """{"servers": {
  "fs": {"command": "x", "args": ["y"], "env": {"A": "b"}, "timeout": 20, "connectTimeout": 5,
    "keepaliveInterval": 0, "idle_timeout_seconds": 60, "max_lifetime_seconds": 0, "supportsParallel": false,
    "skip_preflight": true},
  "api": {"type": "sse", "transport": "http", "url": "https://a.example", "headers": {"K": "v"}, "oauth": true},
  "streamed": {"url": "https://a.example", "streamable": true},
  "untyped": {"url": "https://a.example", "source": "host"}
}}""",
    ),
    "mcpServers": (
        "repo/mcp.json",
        """{"mcpServers": {
  "fs": {"command": "x", "timout": 5, "env_mode": "inherit", "protocol": "2025-06-18"},
  "api": {"serverUrl": "https://a.example", "headersHelper": "h", "trust_level": "trusted"}
}}""",
    ),
}
