"""What a host's policy lets through, by name: tools, and servers before they are started.

The two profiles for programs that nobody watches deny each tool, those that read resources and prompts included, unless
its name is allowed. Pure functions of :class:`~mcpsync.config.model.Policy`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Iterable, Optional

from mcpsync.config.model import Policy, ServerConfig
from mcpsync.errors import ConfigError

__all__ = ["PROFILES", "check_policy", "server_obstacle", "tool_obstacle"]

#: The profiles there are, and whether each denies what is not allowed by name.
PROFILES = {"interactive": False, "daemon": True, "public_gateway": True}
_CHOICES = {"suspicious": ("block", "warn"), "network": ("allow", "deny"), "profile": tuple(PROFILES)}


def check_policy(policy: Policy) -> None:
    """
    :raises ConfigError: a setting has a value that there is not
    """
    for name, choices in _CHOICES.items():
        value = getattr(policy, name)
        if value not in choices:
            raise ConfigError("policy.%s is %.60r: it can be %s" % (name, value, " or ".join(choices)))


def tool_obstacle(policy: Policy, name: str) -> Optional[str]:
    """Why the policy keeps the model from this tool; None if it does not.

    :param name: the one that the model sees; the policy's own names may be globs, as ``mcp__files__*``
    """
    if _is_among(name, policy.deny):
        return "the policy denies %s (tools.deny)" % name
    if _is_among(name, policy.allow):
        return None
    if PROFILES.get(policy.profile, True):
        return "the profile %s denies all tools that are not allowed by name: add %s to tools.allow" % (
            policy.profile,
            name,
        )
    if policy.exclusive:
        return "tools.allow names the only tools that may be used: add %s to it" % name
    return None


def server_obstacle(policy: Policy, server: ServerConfig) -> Optional[str]:
    """Why the policy keeps a server from being started; None if it does not."""
    if server.url is not None:
        if policy.network == "deny" and not server.url.startswith(("unix:", "http+unix:")):
            return "the network policy denies servers with a URL: set execution.networkPolicy to allow"
    elif policy.profile == "public_gateway" and not policy.elevated:
        return "the profile public_gateway starts no programs: set permissions.elevated if it may"
    return None


def _is_among(name: str, rules: Iterable[str]) -> bool:
    return any(rule == name or fnmatchcase(name, rule) for rule in rules)
