"""What ``Host.from_config`` says of how its file is read, and that it is read so again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List, Tuple

from mcpsync.config import Approvals, load
from mcpsync.host import Host


def _file(folder: Path, data: Any) -> str:
    path = folder / ".vscode" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data))
    return str(path)


def test_inputs_workspace_and_variables(tmp_path: Path) -> None:
    file = _file(
        tmp_path,
        {
            "inputs": [{"type": "promptString", "id": "k", "description": "key"}],
            "servers": {"a": {"command": "x", "args": ["${workspaceFolder}", "${input:k}", "${env:NO}"]}},
        },
    )
    host = Host.from_config(
        file, environ={}, inputs=lambda wanted: "v-" + wanted.id, workspace="/w", on_missing="empty", schema_cache=False
    )
    assert host.config_of("a").command == ("x", "/w", "v-k", "")
    host.apply_config(environ={"NO": "yes"})
    assert host.config_of("a").command == ("x", "/w", "v-k", "yes")
    host.close()


def test_the_layout_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps({"servers": {"a": {"command": "x", "args": ["${env:T}"]}}}))
    host = Host.from_config(path, dialect="vscode", environ={"T": "t"}, schema_cache=False)
    assert (host.config.dialect, host.config_of("a").command) == ("vscode", ("x", "t"))
    host.close()


def test_a_file_that_was_found_starts_nothing_before_it_is_approved(tmp_path: Path) -> None:
    file = _file(tmp_path, {"servers": {"a": {"command": "x"}}})
    approvals = Approvals(str(tmp_path / "approved.json"))
    asked: List[Tuple[str, str]] = []

    def approved(path: str, digest: str) -> bool:
        asked.append((path, digest))
        return approvals(path, digest)

    host = Host.from_config(file, approved=approved, schema_cache=False)
    (row,) = host.status()
    assert (row.state, asked[0][0]) == ("invalid", file)
    approvals.approve(file, load(file).digest)
    host.apply_config()  # read again, and held to the same
    assert len(asked) == 2
    assert host.config_of("a").enabled
    host.close()
