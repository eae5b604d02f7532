"""``server.json`` of the MCP registry: one server, as its author describes it, to an entry of our own.

It says how a package is run, or where a remote is; values that the user has to give become variables.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

__all__ = ["entry_of", "is_server_json"]

_RUNNERS: Mapping[str, Tuple[str, Tuple[str, ...], str]] = {
    "npm": ("npx", ("-y",), "%s@%s"),
    "pypi": ("uvx", (), "%s==%s"),
    "oci": ("docker", ("run", "-i", "--rm"), "%s:%s"),
    "nuget": ("dnx", ("--yes",), "%s@%s"),
}
"""For each registry the program, its arguments, and how a version is written."""

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def is_server_json(data: Mapping[str, Any]) -> bool:
    """Whether this is a description of one server."""
    return isinstance(data.get("name"), str) and any(isinstance(data.get(key), list) for key in ("packages", "remotes"))


def entry_of(data: Mapping[str, Any]) -> Tuple[str, Optional[Dict[str, Any]]]:
    """The name of the server and its entry, None where nothing of it can be started or reached from here.

    A package goes before a remote.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(data["name"]).rpartition("/")[2]) or "server"
    for package in _maps(data.get("packages")):
        entry = _package(package)
        if entry is not None:
            return name, entry
    for remote in _maps(data.get("remotes")):
        if isinstance(remote.get("url"), str):
            return name, {
                "type": _either(remote, "type", "transport_type") or "http",
                "url": _template(remote["url"], remote.get("variables")),
                "headers": _values(remote.get("headers")),
            }
    return name, None


def _package(package: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    transport = package.get("transport")
    if isinstance(transport, Mapping) and transport.get("type", "stdio") != "stdio":
        return None
    known = _RUNNERS.get(str(_either(package, "registryType", "registry_type", "registry_name")))
    identifier = _either(package, "identifier", "name")
    if known is None or not isinstance(identifier, str):
        return None
    program, arguments, versioned = known
    version = package.get("version")
    runtime = _arguments(_either(package, "runtimeArguments", "runtime_arguments"))
    env = _values(_either(package, "environmentVariables", "environment_variables"))
    if program == "docker":
        runtime = [*runtime, *(word for variable in env for word in ("-e", variable))]
        if ":" in identifier.rpartition("/")[2] or "@" in identifier:
            version = None
    hint = _either(package, "runtimeHint", "runtime_hint")
    if isinstance(hint, str) and hint:
        arguments = arguments if hint == program else ()
        program = hint
    named = versioned % (identifier, version) if isinstance(version, str) and version else identifier
    extra = [each for each in arguments if each not in runtime]
    return {
        "command": program,
        "args": [*extra, *runtime, named, *_arguments(_either(package, "packageArguments", "package_arguments"))],
        "env": env,
    }


def _either(data: Mapping[str, Any], *keys: str) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)


def _maps(value: Any) -> List[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _arguments(given: Any) -> List[str]:
    found: List[str] = []
    for each in _maps(given):
        name = each.get("name")
        hint = _either(each, "valueHint", "value_hint")
        value = _value(each, str(name or hint or "ARGUMENT"))
        if each.get("type") == "named" and isinstance(name, str):
            found.append(name)
            if value is None:
                continue
        if value is not None:
            found.append(value)
    return found


def _values(given: Any) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for each in _maps(given):
        name = each.get("name")
        if isinstance(name, str):
            value = _value(each, name)
            if value is not None:
                found[name] = value
    return found


def _value(said: Mapping[str, Any], name: str) -> Optional[str]:
    """A fixed value, a default that a variable may replace, a variable; None for what may be left out."""
    fixed = said.get("value")
    if isinstance(fixed, str):
        return _template(fixed, said.get("variables"))
    variable = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_").upper() or "VALUE"
    variable = "_" + variable if variable[0].isdigit() else variable
    default = said.get("default")
    if isinstance(default, str) and "}" not in default:
        return "${%s:-%s}" % (variable, default)
    return "${%s}" % variable if _either(said, "isRequired", "is_required") is True else None


def _template(text: str, variables: Any) -> str:
    known = variables if isinstance(variables, Mapping) else {}

    def value(match: re.Match[str]) -> str:
        said = known.get(match[1])
        return (_value({"isRequired": True, **said}, match[1]) if isinstance(said, Mapping) else None) or match[0]

    return _PLACE.sub(value, text)
