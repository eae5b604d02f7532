"""Config files in the folder of a project, which start nothing until somebody approves them.

Whoever writes to a project could make others run programs. So a file that was found there, other than one that the
caller names, is pinned: approved with the hash of its bytes, and asked for again when these have changed.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from typing import Any, Dict, List, Optional

from mcpsync.errors import ConfigError

__all__ = ["PROJECT_FILES", "Approvals", "project_files", "workspace_of"]

PROJECT_FILES = (
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".github/mcp.json",
    ".roo/mcp.json",
    ".kiro/settings/mcp.json",
    ".zed/settings.json",
    ".codex/config.toml",
    "opencode.json",
    "opencode.jsonc",
)
_CONTINUE = os.path.join(".continue", "mcpServers")
_MOST_BYTES = 16 << 20


def project_files(folder: str) -> List[str]:
    """The config files of a project, those that are there.

    :param folder: the project's own folder; those above and below are not looked into
    """
    found = [os.path.join(folder, *each.split("/")) for each in PROJECT_FILES]
    inside = os.path.join(folder, _CONTINUE)
    with suppress(OSError):
        found.extend(
            os.path.join(inside, name)
            for name in sorted(os.listdir(inside))
            if name.endswith((".json", ".yaml", ".yml"))
        )
    return [path for path in found if os.path.isfile(path)]


def workspace_of(file: Optional[str]) -> Optional[str]:
    """The project folder that a file belongs to by its place; None for any other file, and those of the home folder."""
    if file is None:
        return None
    path = os.path.abspath(file)
    for each in (*PROJECT_FILES, ".continue/mcpServers/" + os.path.basename(path)):
        end = os.sep + each.replace("/", os.sep)
        if path.endswith(end):
            folder = path[: -len(end)] or os.sep
            return None if folder == os.path.abspath(os.path.expanduser("~")) else folder
    return None


class Approvals:
    """The project files that were approved, kept in one file, for all processes.

    A damaged file approves nothing.

    :param file: where; its folder is made when something is approved
    """

    def __init__(self, file: str) -> None:
        self._file = os.path.abspath(os.path.expanduser(file))

    def __call__(self, file: str, digest: str) -> bool:
        """Whether this file was approved with this content: what ``load`` takes as ``approved``."""
        return self._read().get(_name(file)) == digest

    def approve(self, file: str, digest: str) -> None:
        """Remember that somebody approved a file.

        :param digest: of what they saw: :attr:`mcpsync.config.Config.digest`
        :raises ConfigError: it cannot be written
        """
        self._write({**self._read(), _name(file): digest})

    def withdraw(self, file: str) -> None:
        """Forget it.

        :raises ConfigError: it cannot be written
        """
        known = self._read()
        if known.pop(_name(file), None) is not None:
            self._write(known)

    def _read(self) -> Dict[str, Any]:
        try:
            with open(self._file, "rb") as file:
                data = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    def _write(self, known: Dict[str, Any]) -> None:
        folder = os.path.dirname(self._file)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".approved-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(known, file, indent=1, sort_keys=True)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self._file)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise ConfigError("cannot be written: %s" % error.strerror, file=self._file) from error


def _name(file: str) -> str:
    return os.path.normcase(os.path.realpath(file))
