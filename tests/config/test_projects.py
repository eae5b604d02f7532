"""Files found in a project start nothing until they are approved; inputs are asked for once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import List, Optional

import pytest

from mcpsync.config import Approvals, Input, load, project_files
from mcpsync.errors import ConfigError

TEXT = '{"mcpServers": {"a": {"command": "${NOT_SET}", "headersHelper": "x"}, "b": {"command": "y"}}}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (".mcp.json", ".vscode/mcp.json", ".continue/mcpServers/b.yaml", "mcp.json", "other.json"):
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT)
    return tmp_path / "p"


class TestApproval:
    def test_files_of_a_project(self, project: Path) -> None:
        found = [os.path.relpath(path, project).replace(os.sep, "/") for path in project_files(str(project))]
        assert found == [".mcp.json", ".vscode/mcp.json", ".continue/mcpServers/b.yaml"]
        assert project_files(str(project / "none")) == []

    def test_nothing_is_started_or_looked_up_before(self, project: Path, tmp_path: Path) -> None:
        approvals = Approvals(str(tmp_path / "state" / "approved.json"))
        path = str(project / ".mcp.json")
        config = load(path, environ={}, approved=approvals)
        assert not config.approved
        assert not any(server.enabled for server in config.servers.values())
        errors = [each for each in config.diagnostics if each.severity == "error"]
        assert [str(each.as_error()) for each in errors] == [
            "%s:1: this file was found in a project and is not approved, or has changed since: "
            "look at it and approve it, or name it" % path
        ]
        assert str(config.servers["b"].error) == str(errors[0].as_error())

        approvals.approve(path, config.digest)
        config = load(path, environ={"NOT_SET": "x"}, approved=Approvals(str(tmp_path / "state" / "approved.json")))
        assert config.approved
        assert config.servers["b"].enabled

    def test_a_changed_file_is_asked_for_again(self, project: Path, tmp_path: Path) -> None:
        approvals = Approvals(str(tmp_path / "approved.json"))
        path = project / ".mcp.json"
        approvals.approve(str(path), load(path, environ={}).digest)
        path.write_text(TEXT + " ")
        assert not load(path, environ={}, approved=approvals).approved
        path.write_text(TEXT)
        assert load(path, environ={}, approved=approvals).approved
        approvals.withdraw(str(path))
        assert not load(path, environ={}, approved=approvals).approved

    def test_a_damaged_list_approves_nothing(self, project: Path, tmp_path: Path) -> None:
        store = tmp_path / "approved.json"
        approvals = Approvals(str(store))
        path = str(project / ".mcp.json")
        digest = load(path, environ={}).digest
        approvals.approve(path, digest)
        for damage in ("", "[1]", store.read_text()[:-4], "[" * 100_000):
            store.write_text(damage)
            assert not approvals(path, digest)
        approvals.approve(path, digest)
        assert approvals(path, digest)
        if sys.platform != "win32":
            assert store.stat().st_mode & 0o777 == 0o600

    def test_a_file_that_the_caller_names_is_approved_by_that(self, project: Path) -> None:
        config = load(project / ".mcp.json", environ={"NOT_SET": "x"})
        assert config.approved
        assert config.servers["a"].enabled


class TestInputs:
    TEXT = """{
  "inputs": [
    {"type": "promptString", "id": "key", "password": true, "description": "Key", "default": "never"},
    {"type": "promptString", "id": "name", "default": "me"},
    {"type": "command", "id": "run", "command": "ext.run"}
  ],
  "servers": {
    "a": {"command": "x", "args": ["${input:key}", "${input:key}${input:name}"]},
    "b": {"command": "${input:run}"},
    "c": {"command": "${input:nobody}"},
    "d": {"command": "x"}
  }
}"""

    def path(self, folder: Path) -> Path:
        path = folder / "mcp.json"
        path.write_text(self.TEXT)
        return path

    def test_each_is_asked_for_once(self, tmp_path: Path) -> None:
        asked: List[Input] = []

        def answer(wanted: Input) -> Optional[str]:
            asked.append(wanted)
            return "${input:name}" if wanted.password else None if wanted.kind == "command" else "n"

        config = load(self.path(tmp_path), environ={}, inputs=answer)
        assert config.servers["a"].command == ("x", "${input:name}", "${input:name}n")  # never looked at again
        assert [each.id for each in asked] == ["key", "name", "run"]
        assert (asked[0].description, asked[2].command) == ("Key", "ext.run")
        assert "is a command of the program that the file was written for" in str(config.servers["b"].error)
        assert "${input:nobody} is not among the inputs of this file" in str(config.servers["c"].error)
        assert config.servers["d"].enabled

    def test_defaults_without_somebody_to_ask(self, tmp_path: Path) -> None:
        """The default of a password is none: it stands in the file for all to read."""
        config = load(self.path(tmp_path), environ={})
        assert "${input:key} has to be asked for: answer it with inputs=" in str(config.servers["a"].error)

    def test_nobody_is_asked_before_approval(self, tmp_path: Path) -> None:
        def answer(_: Input) -> str:
            raise AssertionError("asked")

        config = load(self.path(tmp_path), environ={}, inputs=answer, approved=lambda file, digest: False)
        assert not config.servers["a"].enabled


class TestOptions:
    def test_what_becomes_of_a_missing_variable(self) -> None:
        data = {"mcpServers": {"a": {"command": "x", "args": ["-${NO}-"]}}}
        assert load(data, environ={}).servers["a"].error is not None
        assert load(data, environ={}, on_missing="empty").servers["a"].command == ("x", "--")
        config = load(data, environ={}, on_missing="keep")
        assert config.servers["a"].command == ("x", "-${NO}-")
        assert [str(each) for each in config.diagnostics] == [
            "warning: mcpServers.a.args[0]: has a variable that is not set, and stays as it is: NO"
        ]

    def test_folders(self) -> None:
        data = {"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}${/}${workspaceFolderBasename}"]}}}
        config = load(data, environ={}, workspace="/srv/p")
        assert config.servers["a"].command == ("x", "/srv/p%sp" % os.sep)
        message = "${workspaceFolder} is not known here: say which folder it is with workspace="
        assert message in str(load(data, environ={}).servers["a"].error)

    def test_wrong_options(self) -> None:
        with pytest.raises(ConfigError, match="on_missing is one of error, empty, keep"):
            load({"mcpServers": {}}, on_missing="ignore")
        with pytest.raises(ConfigError, match=r"there is no layout 'vsc0de': .* \(did you mean 'vscode'\?\)"):
            load({"mcpServers": {}}, dialect="vsc0de")
        with pytest.raises(ConfigError, match="has no servers where the layout zed has them: context_servers"):
            load({"mcpServers": {}}, dialect="zed")


class TestEnvFiles:
    def test_its_lines(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text(
            '# c\n\nA=1\nexport B = two words # c\nC=\'a # b\'\nD="x\\ny\\"$A"\nE=\nF=a#b\nG=${A}\n'
        )
        data = '{"mcpServers": {"a": {"command": "x", "envFile": ".env", "env": {"A": "over"}}}}'
        (tmp_path / "mcp.json").write_text(data)
        found = load(tmp_path / "mcp.json", environ={}).servers["a"].env
        assert list(found.values()) == ["over", "two words", "a # b", 'x\ny"$A', "", "a#b", "${A}"]
        assert "".join(found) == "ABCDEFG"

    def test_what_is_wrong_shows_no_value(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("A=1\nsk-live\n")
        (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}')
        server = load(tmp_path / "mcp.json", environ={}).servers["a"]
        assert "mcpServers.a.envFile: line 2 of the file is not of the form NAME=value" in str(server.error)
        assert "sk-live" not in str(server.error)
