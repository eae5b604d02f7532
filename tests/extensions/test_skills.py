"""Skills: listed without being read, read only if they are what their entry says."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import logging
import pickle
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

import mcpsync
from mcpsync.errors import InvalidMessage, InvalidParams, MethodNotFound, PageLimit, RequestTimeout, RpcError
from mcpsync.extensions import skills
from mcpsync.extensions.skills import Skill, SkillMismatch, Skills
from mcpsync.transport.memory import ServerEnd, StreamServer
from tests.peers.scripted import peer

pytestmark = pytest.mark.own_methods("skills/list", "skills/get")

Message = Dict[str, Any]

MAIN = "skill://acme/pdf-processing/SKILL.md"
FORMS = "skill://acme/pdf-processing/references/FORMS.md"
LOGO = "skill://acme/pdf-processing/logo.png"
FRONTMATTER = {"name": "pdf-processing", "description": "Fill in forms", "metadata": {"version": 2}}
TEXT = "---\nname: pdf-processing\ndescription: Fill in forms\nmetadata: {version: 2}\n---\n\nDö it well.\n"
FILES: Dict[str, bytes] = {MAIN: TEXT.encode(), FORMS: b"Forms.\n", LOGO: b"\x89PNG\xff"}


def entry_for(files: Dict[str, bytes], **changed: Any) -> Message:
    resources = [
        {"uri": uri, "digest": "sha256:" + hashlib.sha256(data).hexdigest(), "size": len(data)}
        for uri, data in files.items()
    ]
    return {"uri": MAIN, "frontmatter": copy.deepcopy(FRONTMATTER), "resources": resources, **changed}


ENTRY = entry_for(FILES)


class SkillServer:
    """A server in this process, whose entries and files a test may change at any time.

    :ivar pages: of entries
    :ivar asked: the requests that came, as (method, params)
    """

    def __init__(self, *pages: List[Any]) -> None:
        self.pages: List[List[Any]] = list(pages or ([copy.deepcopy(ENTRY)],))
        self.files = dict(FILES)
        self.capabilities: Message = {"resources": {}, "extensions": {skills.NAME: {}}}
        self.declared: Optional[Message] = None
        self.asked: List[Tuple[str, Message]] = []

    def serve(self, client: ServerEnd) -> None:
        for data in client:
            request = json.loads(data)
            if "id" in request:
                answer = self.answer(request["method"], request["params"])
                if answer is not None:
                    client.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode())

    def answer(self, method: str, params: Message) -> Optional[Message]:
        self.asked.append((method, {name: value for name, value in params.items() if name != "_meta"}))
        self.declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get("extensions")
        if method == "server/discover":
            result: Any = {"supportedVersions": ["2026-07-28"], "capabilities": self.capabilities}
        elif method == "skills/list":
            page = int(params.get("cursor", "0"))
            result = {"skills": self.pages[page]}
            if page + 1 < len(self.pages):
                result["nextCursor"] = str(page + 1)
        elif method == "skills/get":
            result = next(
                ({"skill": each} for page in self.pages for each in page if each["uri"] == params["uri"]), None
            )
        else:
            result = self.contents(params["uri"])
        if result is None:
            return {"error": {"code": -32602, "message": "there is no such thing"}}
        return {"result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}}

    def contents(self, uri: str) -> Optional[Message]:
        data = self.files.get(uri)
        if data is None:
            return None
        try:
            body = {"text": data.decode()}
        except UnicodeDecodeError:
            body = {"blob": base64.b64encode(data).decode()}
        return {"contents": [{"uri": uri, **body}]}

    def reads(self) -> List[str]:
        return [params["uri"] for method, params in self.asked if method == "resources/read"]


@contextmanager
def offered_by(server: SkillServer, **options: Any) -> Iterator[Skills]:
    options.setdefault("extensions", skills.EXTENSION)
    with mcpsync.connect(StreamServer(server.serve), name="acme", protocol="modern", **options) as client:
        yield Skills(client)


# -- entries ---------------------------------------------------------------------------------------------------


def test_listing_reads_nothing() -> None:
    server = SkillServer()
    with offered_by(server) as offered:
        (skill,) = offered.list()
        assert (skill.uri, skill.name, skill.description) == (MAIN, "pdf-processing", "Fill in forms")
        assert skill.frontmatter == FRONTMATTER
        assert not skill.dynamic and skill.resources is not None
        assert [each.uri for each in skill.resources] == list(FILES)
        assert skill.resources[1] == (FORMS, ENTRY["resources"][1]["digest"], 7)
        assert skill.to_wire() == ENTRY
        assert offered.get(MAIN) == skill
        assert server.reads() == []
        assert server.declared == {skills.NAME: {}}


def test_nothing_is_declared_unless_it_is_asked_for() -> None:
    server = SkillServer()
    with offered_by(server, extensions=None) as offered:
        assert len(offered.list()) == 1
        assert server.declared is None


def test_all_pages() -> None:
    others = [entry_for({"skill://%d/SKILL.md" % n: b"x"}, uri="skill://%d/SKILL.md" % n) for n in range(3)]
    server = SkillServer([others[0]], [], [others[1], others[2]])
    with offered_by(server) as offered:
        assert [skill.uri for skill in offered.list()] == [each["uri"] for each in others]
    with offered_by(server, page_limit=2) as offered, pytest.raises(PageLimit) as caught:
        offered.list()
    assert [skill.uri for skill in caught.value.partial] == ["skill://0/SKILL.md"]


def test_a_server_without_the_extension_is_not_asked() -> None:
    server = SkillServer()
    server.capabilities = {"resources": {}}
    with offered_by(server) as offered:
        assert not offered.offered()
        assert offered.list() == []
        with pytest.raises(MethodNotFound, match="the server does not declare the extension"):
            offered.get(MAIN)
        assert [method for method, _ in server.asked] == ["server/discover"]


def test_a_server_that_declares_it_and_does_not_know_it() -> None:
    server = SkillServer()
    unknown = {"error": {"code": -32601, "message": "what?"}}
    plain = server.answer
    server.answer = lambda method, params: unknown if method == "skills/list" else plain(method, params)
    with offered_by(server) as offered, pytest.raises(MethodNotFound):
        offered.list()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"uri": None}, "Skill.uri"),
        ({"uri": "skill://acme/README.md"}, "Skill.uri"),
        ({"frontmatter": "name: x"}, "Skill.frontmatter: no object"),
        ({"frontmatter": {"name": "x"}}, "Skill.frontmatter.description"),
        ({"frontmatter": {"description": "x", "name": 1}}, "Skill.frontmatter.name"),
        ({"resources": None}, "neither an array nor 'dynamic'"),
        ({"resources": "static"}, "neither an array nor 'dynamic'"),
        ({"resources": []}, "SKILL.md is missing"),
        ({"resources": ENTRY["resources"][1:]}, "SKILL.md is missing"),
        ({"resources": [*ENTRY["resources"], ENTRY["resources"][1]]}, "stands there twice"),
        ({"resources": [ENTRY["resources"][0], "x"]}, "item 1: no object with a uri"),
        ({"resources": [{**ENTRY["resources"][0], "digest": "sha256:" + "A" * 64}]}, "item 0.digest"),
        ({"resources": [{**ENTRY["resources"][0], "digest": None}]}, "item 0.digest"),
        ({"resources": [{**ENTRY["resources"][0], "size": -1}]}, "item 0.size"),
        ({"resources": [{**ENTRY["resources"][0], "size": True}]}, "item 0.size"),
        (
            {"resources": [ENTRY["resources"][0], {**ENTRY["resources"][1], "uri": "skill://other/x"}]},
            "'skill://other/x' is not in the folder",
        ),
        (
            {"resources": [ENTRY["resources"][0], {**ENTRY["resources"][1], "uri": MAIN[:-8] + "a/../../x"}]},
            "is not in the folder",
        ),
    ],
)
def test_an_invalid_entry_is_left_out(changed: Message, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    wrong = {**ENTRY, **changed}
    server = SkillServer([wrong, ENTRY])
    with offered_by(server) as offered, caplog.at_level(logging.WARNING, "mcpsync"):
        assert [skill.to_wire() for skill in offered.list()] == [ENTRY]
    assert problem in caplog.text and "an entry of skills is left out" in caplog.text
    with pytest.raises(InvalidMessage):
        Skill(wrong)


def test_getting_one() -> None:
    server = SkillServer([])
    with offered_by(server) as offered:
        with pytest.raises(InvalidParams) as caught:
            offered.get(MAIN)
        assert (caught.value.server, caught.value.method) == ("acme", "skills/get")
        server.pages = [[{**ENTRY, "resources": 1}]]
        with pytest.raises(InvalidMessage, match=r"server 'acme': skills/get: Skill\.resources"):
            offered.get(MAIN)
        server.answer = lambda method, params: {"result": {"resultType": "complete", "skill": ENTRY}}
        with pytest.raises(InvalidMessage, match="the entry is that of 'skill://acme"):
            offered.get("skill://other/SKILL.md")


def test_an_entry_is_kept_by_a_host() -> None:
    skill = Skill(ENTRY)
    again = pickle.loads(pickle.dumps(skill))
    assert again == skill and again.resources == skill.resources
    assert Skill(json.loads(json.dumps(skill.to_wire()))) == skill


def test_references_are_relative_to_the_skill() -> None:
    skill = Skill(ENTRY)
    assert skill.resolve("references/FORMS.md") == FORMS
    assert skill.resolve("./references/../logo.png") == LOGO
    assert skill.holds(FORMS) and not skill.holds(skill.resolve("../other/SKILL.md"))


# -- reading ---------------------------------------------------------------------------------------------------


def test_reading() -> None:
    server = SkillServer()
    with offered_by(server) as offered:
        (skill,) = offered.list()
        assert offered.read(skill) == TEXT
        assert offered.read_resource(skill, FORMS).text == "Forms.\n"
        assert offered.read_resource(skill, LOGO).data_bytes == FILES[LOGO]
        assert offered.read_resource(skill, MAIN).text == TEXT
        assert server.reads() == [MAIN, FORMS, LOGO, MAIN]


OTHER = TEXT.replace("Fill in forms", "Send me mail!")


@pytest.mark.parametrize(
    ("main", "entry", "problem"),
    [
        (TEXT.replace("well", "Well"), ENTRY, "its digest is sha256:"),
        (TEXT + "more\n", ENTRY, "98 bytes came where the entry says 93"),
        (OTHER, entry_for({**FILES, MAIN: OTHER.encode()}), "differ in the field 'description'"),
        ("no frontmatter", entry_for({**FILES, MAIN: b"no frontmatter"}), "does not begin with YAML"),
        ("---\na: [\n---\n", entry_for({**FILES, MAIN: b"---\na: [\n---\n"}), "its frontmatter is no valid YAML"),
    ],
)
def test_a_skill_that_is_not_what_its_entry_says(main: str, entry: Message, problem: str) -> None:
    server = SkillServer([entry])
    server.files[MAIN] = main.encode()
    with offered_by(server) as offered:
        (skill,) = offered.list()
        with pytest.raises(SkillMismatch) as caught:
            offered.read(skill)
        assert problem in str(caught.value)
        assert str(caught.value).startswith("server 'acme': resources/read: '%s': " % MAIN)
        assert (caught.value.skill, caught.value.uri) == (MAIN, MAIN)
        assert pickle.loads(pickle.dumps(caught.value)).skill == MAIN
        for uri in (FORMS, LOGO):
            with pytest.raises(SkillMismatch, match=r"its SKILL\.md is not what the entry says"):
                offered.read_resource(skill, uri)
        with pytest.raises(SkillMismatch):
            offered.read_resource(skill, MAIN)
        assert server.reads() == [MAIN, MAIN]


def test_bytes_that_are_no_text() -> None:
    main = b"---\nname: \xff\n---\n"
    server = SkillServer([entry_for({**FILES, MAIN: main})])
    server.files[MAIN] = main
    with offered_by(server) as offered, pytest.raises(SkillMismatch, match="it is no text in UTF-8"):
        offered.read(*offered.list())


def test_a_refused_skill_is_read_again_when_it_is_right_or_has_another_entry() -> None:
    server = SkillServer()
    server.files[MAIN] += b"more"
    with offered_by(server) as offered:
        (skill,) = offered.list()
        with pytest.raises(SkillMismatch):
            offered.read(skill)
        server.pages = [[entry_for(server.files)]]
        changed = offered.get(MAIN)
        assert offered.read_resource(changed, FORMS).text == "Forms.\n"
        assert offered.read(changed) == TEXT + "more"
        with pytest.raises(SkillMismatch):
            offered.read(skill)
        server.files[MAIN] = FILES[MAIN]
        assert offered.read(skill) == TEXT
        assert offered.read_resource(skill, FORMS).text == "Forms.\n"


def test_a_supporting_file_that_is_not_what_the_entry_says() -> None:
    server = SkillServer()
    server.files[FORMS] = b"Farms.\n"
    with offered_by(server) as offered:
        (skill,) = offered.list()
        assert offered.read(skill) == TEXT
        with pytest.raises(SkillMismatch, match="its digest is") as caught:
            offered.read_resource(skill, FORMS)
        assert (caught.value.skill, caught.value.uri) == (MAIN, FORMS)
        assert offered.read_resource(skill, LOGO).data_bytes == FILES[LOGO]


@pytest.mark.parametrize("uri", ["skill://acme/pdf-processing/new.md", "skill://acme/pdf-processing", "file:///etc/x"])
def test_a_file_that_is_not_in_the_entry_is_not_asked_for(uri: str) -> None:
    server = SkillServer()
    server.files[uri] = b"there"
    with offered_by(server) as offered:
        (skill,) = offered.list()
        with pytest.raises(SkillMismatch, match="its entry has no such file"):
            offered.read_resource(skill, uri)
        assert server.reads() == []


def test_an_answer_that_is_not_one_file() -> None:
    server = SkillServer()
    with offered_by(server) as offered:
        (skill,) = offered.list()
        for contents in ([], [{"uri": MAIN, "text": TEXT}] * 2):
            server.contents = lambda uri, them=contents: {"contents": them}
            with pytest.raises(SkillMismatch, match="%d contents came instead of one" % len(contents)):
                offered.read(skill)
        server.contents = lambda uri: {"contents": [{"uri": uri, "blob": "A"}]}
        with pytest.raises(SkillMismatch, match="not base64"):
            offered.read(skill)
        server.contents = lambda uri: None
        with pytest.raises(RpcError):
            offered.read(skill)


def test_a_dynamic_skill_is_held_to_its_frontmatter_alone() -> None:
    server = SkillServer([{**ENTRY, "resources": "dynamic"}])
    server.files[FORMS] = b"made just now"
    with offered_by(server) as offered:
        (skill,) = offered.list()
        assert skill.dynamic and skill.resources is None
        assert offered.read(skill) == TEXT
        assert offered.read_resource(skill, FORMS).text == "made just now"
        for outside in ("skill://acme/other/SKILL.md", skill.resolve("../other/SKILL.md"), MAIN[:-8] + "a/../../x"):
            with pytest.raises(SkillMismatch, match="no such file"):
                offered.read_resource(skill, outside)
        server.files[MAIN] = OTHER.encode()
        with pytest.raises(SkillMismatch, match="'description'"):
            offered.read(skill)
        with pytest.raises(SkillMismatch):
            offered.read_resource(skill, FORMS)


def test_time_is_bounded_by_the_call() -> None:
    server = SkillServer()
    with offered_by(server) as offered:
        (skill,) = offered.list(timeout=20)
        server.answer = lambda method, params: None
        with pytest.raises(RequestTimeout):
            offered.read(skill, timeout=0.2)


# -- over stdio ------------------------------------------------------------------------------------------------


def list_skills(server: Any, request: Any, cursor: Any = None) -> Any:
    import json

    with open(server.config["entries"], encoding="utf-8") as file:
        entries = json.load(file)
    number = int(cursor or "0")
    more = {"nextCursor": str(number + 1)} if number + 1 < len(entries) else {}
    return {"skills": [entries[number]], **more}


def read_file(server: Any, request: Any, uri: Any) -> Any:
    import json

    with open(server.config["files"], encoding="utf-8") as file:
        return {"contents": [{"uri": uri, "text": json.load(file)[uri]}]}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_over_stdio(tmp_path: Path, era: str) -> None:
    texts = {uri: data.decode() for uri, data in FILES.items() if uri != LOGO}
    good = entry_for({uri: FILES[uri] for uri in texts})
    bad = "skill://acme/other/SKILL.md"
    texts[bad] = OTHER
    entries = [good, entry_for({bad: TEXT.replace("forms", "farms").encode()}, uri=bad)]
    (tmp_path / "entries.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "files.json").write_text(json.dumps(texts), encoding="utf-8")
    server = peer(
        tmp_path,
        era=era,
        handlers={"skills/list": list_skills, "resources/read": read_file},
        capabilities={"resources": {}, "extensions": {skills.NAME: {}}},
        entries=str(tmp_path / "entries.json"),
        files=str(tmp_path / "files.json"),
    )
    with mcpsync.connect(server.command, extensions=skills.EXTENSION) as client:
        offered = Skills(client)
        first, second = offered.list()
        assert server.received("resources/read") == []
        assert offered.read(first) == TEXT
        assert offered.read_resource(first, first.resolve("references/FORMS.md")).text == "Forms.\n"
        with pytest.raises(SkillMismatch):
            offered.read(second)
    assert [each["params"]["uri"] for each in server.received("resources/read")] == [MAIN, FORMS, bad]
    assert [each["params"].get("cursor") for each in server.received("skills/list")] == [None, "1"]
