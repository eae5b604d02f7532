"""Random edits of random files: each says what it should, and keeps every byte that it is not about."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from mcpsync.config.edit import add_server, change_server, remove_server
from mcpsync.config.read import read_file

FORMS = ["json", "jsonc", "yaml", "flow.yaml"]
if sys.version_info >= (3, 11):
    FORMS.append("toml")
NAMES = ["a", "b.c", "d-e", "f_g", "true", "9", "Web"]


class Writer:
    """Writes a file the way a person might, with comments, blank lines and an indentation of its own."""

    def __init__(self, chance: random.Random, form: str) -> None:
        self.chance = chance
        self.form = form
        self.count = 0
        self.newline = chance.choice(["\n", "\n", "\r\n"])
        self.unit = chance.choice(["  ", "    ", "\t"] if form.startswith("json") else ["  ", "    "])
        self.mark = {"json": "", "jsonc": "//"}.get(form, "#")

    def unique(self, letter: str) -> str:
        self.count += 1
        return "%s%04d" % (letter, self.count)

    def comment(self, indent: str) -> str:
        if not self.mark or self.chance.random() < 0.6:
            return ""
        return "%s%s %s%s" % (indent, self.mark, self.unique("note"), self.newline)

    def beside(self) -> str:
        return "" if not self.mark or self.chance.random() < 0.7 else "  %s %s" % (self.mark, self.unique("note"))

    def value(self) -> Any:
        return self.chance.choice(
            [self.unique("v"), [self.unique("v"), "${VAR} x"], {"K": self.unique("v"), "L-M": "a: #b"}, {}, [], 7, True]
        )

    def server(self) -> Dict[str, Any]:
        keys = self.chance.sample(["args", "env", "cwd", "timeout", "note"], self.chance.randrange(5))
        return {"command": self.unique("v"), **{key: self.value() for key in keys}}

    def flow_map(self, data: Dict[str, Any], indent: str) -> str:
        if not data:
            return self.chance.choice(["{}", "{ }"])
        if self.chance.random() < 0.4:
            return "{%s}" % ", ".join("%s: %s" % (json.dumps(key), self.flow(each, "")) for key, each in data.items())
        inner = indent + self.unit
        lines: List[str] = []
        for index, (key, each) in enumerate(data.items()):
            last = index + 1 == len(data)
            comma = "" if last and (self.form == "json" or self.chance.random() < 0.5) else ","
            lines.append(
                "%s%s%s: %s%s%s%s"
                % (
                    self.comment(inner),
                    inner,
                    json.dumps(key),
                    self.flow(each, inner),
                    comma,
                    self.beside(),
                    self.newline,
                )
            )
        return "{%s%s%s%s}" % (self.newline, "".join(lines), self.comment(inner), indent)

    def flow(self, value: Any, indent: str) -> str:
        return self.flow_map(value, indent) if isinstance(value, dict) and indent else json.dumps(value)

    def block_map(self, data: Dict[str, Any], indent: str) -> str:
        lines: List[str] = []
        for key, each in data.items():
            name = key if key not in ("true", "9") else json.dumps(key)
            if isinstance(each, dict) and each and self.chance.random() < 0.8:
                body = "%s%s%s" % (self.beside(), self.newline, self.block_map(each, indent + self.unit))
            else:
                body = " %s%s%s" % (json.dumps(each), self.beside(), self.newline)
            lines.append("%s%s%s:%s" % (self.comment(indent), indent, name, body))
        return "".join(lines) + self.comment(indent)

    def tables(self, servers: Dict[str, Any]) -> str:
        def inline(value: Any) -> str:
            if isinstance(value, dict):
                return "{%s}" % ", ".join("%s = %s" % (json.dumps(key), inline(each)) for key, each in value.items())
            return json.dumps(value)

        text = "model = %s%s%s" % (json.dumps(self.unique("v")), self.beside(), self.newline)
        for name, server in servers.items():
            text += self.newline + self.comment("") + "[mcp_servers.%s]" % json.dumps(name) + self.newline
            for key, value in server.items():
                text += "%s = %s%s%s" % (key, inline(value), self.beside(), self.newline)
        return text + self.newline + "[other]" + self.newline + "k = 1" + self.newline

    def file(self) -> Tuple[str, Tuple[str, ...]]:
        names = self.chance.sample(NAMES, self.chance.randrange(1, 5))
        servers = {name: self.server() for name in names}
        if self.form == "toml":
            return self.tables(servers), ("mcp_servers",)
        data = {"before": self.value(), "mcpServers": servers, "after": self.value()}
        if self.form == "yaml":
            return self.comment("") + self.block_map(data, ""), ("mcpServers",)
        if self.form == "flow.yaml":
            text = "before: 1%smcpServers: %s%s" % (self.newline, self.flow_map(servers, "  "), self.newline)
            return text, ("mcpServers",)
        return self.comment("") + self.flow_map(data, "") + self.newline, ("mcpServers",)


def is_within(part: str, whole: str) -> bool:
    """Whether all characters of a text stand in another, in their order."""
    characters = iter(whole)
    return all(char in characters for char in part)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: plain(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each is not None}
    return [plain(each) for each in value] if isinstance(value, list) else value


def one_edit(path: Path, root: str, writer: Writer) -> None:
    chance = writer.chance
    before = path.read_bytes().decode()
    data = read_file(str(path)).data
    servers = data.get(root) or {}
    known = list(servers)
    new = [name for name in NAMES if name not in known]
    kind = chance.choice(["add"] * (2 if new else 0) + ["change", "remove"] * (1 if known else 0))
    if kind == "add":
        name, entry = chance.choice(new), writer.server()
        add_server(str(path), name, entry)
        after = path.read_bytes().decode()
        assert is_within(before, after)
        data[root] = {**servers, name: entry}
    elif kind == "remove":
        name = chance.choice(known)
        remove_server(str(path), name)
        after = path.read_bytes().decode()
        assert is_within(after, before)
        data[root] = {each: entry for each, entry in servers.items() if each != name}
    else:
        name = chance.choice(known)
        key, value = chance.choice(["command", "args", "env", "further"]), writer.value()
        old = servers[name].get(key)
        change_server(str(path), name, {key: value})
        after = path.read_bytes().decode()
        if isinstance(old, str):
            begin = before.index(old)
            begin, end = (begin - 1, begin + len(old) + 1) if before[begin - 1] == '"' else (begin, begin + len(old))
            assert after.startswith(before[:begin].rstrip(" "))
            assert after.endswith(before[end:])
        elif old is None:
            assert is_within(before, after)
        data[root] = {**servers, name: {**servers[name], key: value}}
    found = read_file(str(path)).data
    assert plain(found).get(root, {}) == plain(data)[root]
    assert list(found.get(root) or {}) == list(data[root])
    assert {key: each for key, each in found.items() if key != root} == {k: e for k, e in data.items() if k != root}
    assert after.count("\r") == (after.count("\n") if writer.newline == "\r\n" else 0)
    for index in range(1, writer.count + 1):  # comments of others
        note = "note%04d" % index
        if note in before and kind != "remove":
            assert note in after or _inside(before, note, name)


def _inside(text: str, note: str, name: str) -> bool:
    """Whether a comment stands inside the entry: a value of several lines takes those in it along."""
    return text.index(name) < text.index(note)


def run(folder: Path, seed: int, edits: int) -> None:
    chance = random.Random(seed)
    done = 0
    while done < edits:
        form = chance.choice(FORMS)
        writer = Writer(chance, form)
        text, (root,) = writer.file()
        path = folder / ("file-%d.%s" % (done, form))
        path.write_bytes(text.encode())
        for _ in range(min(8, edits - done)):
            one_edit(path, root, writer)
            done += 1


@pytest.mark.parametrize("seed", range(4))
def test_random_edits(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, 80)


@pytest.mark.soak
def test_ten_thousand_random_edits(tmp_path: Path) -> None:
    run(tmp_path, 20_26, 10_000)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "toml"])
def test_what_was_added_goes_without_a_trace(tmp_path: Path, form: str) -> None:
    for seed in range(15):
        writer = Writer(random.Random(seed), form)
        text, _ = writer.file()
        path = tmp_path / ("%d.%s" % (seed, form))
        path.write_bytes(text.encode())
        add_server(str(path), "new", {"command": "x", "env": {"A": "${B}"}})
        remove_server(str(path), "new")
        assert path.read_bytes().decode() == text
