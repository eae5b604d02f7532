"""Skills: instructions for an agent that a server publishes as files, each verified when it is read.

::

    from mcpsync.extensions import skills

    with mcpsync.connect(url, extensions=skills.EXTENSION) as client:
        offered = skills.Skills(client)
        for skill in offered.list():                       # nothing is read yet
            print(skill.name, "-", skill.description)
        print(offered.read(skill))                         # SKILL.md
        print(offered.read_resource(skill, skill.resolve("references/FORMS.md")).text)

What a digest proves is that the content is what the entry said, not that either can be trusted: both come from the
same server. A skill is text from a stranger for a model to follow.

Specification: the extension ``io.modelcontextprotocol/skills`` (SEP-2640).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from mcpsync.client.features import DEFAULT
from mcpsync.errors import InvalidMessage, McpError, ProtocolError, RpcError
from mcpsync.types.raw import RawView

if TYPE_CHECKING:
    from mcpsync.client.client import Client
    from mcpsync.client.features import Timeout
    from mcpsync.types import JsonObject, ResourceContents

__all__ = ["EXTENSION", "NAME", "Skill", "SkillMismatch", "SkillResource", "Skills"]

NAME = "io.modelcontextprotocol/skills"

EXTENSION: Mapping[str, Mapping[str, Any]] = {NAME: {}}
"""For the option ``extensions`` of a client: it declares that skills are understood."""

_METHOD_NOT_FOUND = -32601
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_MAIN_FILE = "/SKILL.md"
_DYNAMIC = "dynamic"


class SkillMismatch(ProtocolError):
    """A skill's file is not what its entry says: tampered with, broken, or changed since the entry came.

    Nothing of it may be used. If the skill was merely changed, :meth:`Skills.get` gives its entry as it is now, which
    is another one than was approved.

    :ivar skill: URI of the skill
    :ivar uri: URI of the file
    """

    def __init__(
        self, message: str, *, skill: str, uri: str, server: Optional[str] = None, method: Optional[str] = None
    ) -> None:
        super().__init__(message, server=server, method=method)
        self.skill = skill
        self.uri = uri


class SkillResource(NamedTuple):
    """A file of a skill.

    :ivar uri: to read it by
    :ivar digest: SHA-256 of its bytes, as ``sha256:`` and 64 hexadecimal digits
    :ivar size: in bytes
    """

    uri: str
    digest: str
    size: int


class Skill(RawView):
    """The entry of a skill: everything about it but the contents of its files.

    Two servers may have skills of the same URI, which are different skills: keep the server's name with it.

    :ivar raw: the JSON object as parsed
    :ivar resources: all its files, SKILL.md among them; None if it is :attr:`dynamic`
    :raises InvalidMessage: it is no valid entry
    """

    __slots__ = ("resources",)

    resources: Optional[Tuple[SkillResource, ...]]

    def __init__(self, raw: JsonObject) -> None:
        super().__init__(raw)
        uri, frontmatter, resources = raw.get("uri"), raw.get("frontmatter"), raw.get("resources")
        if not isinstance(uri, str) or not uri.endswith(_MAIN_FILE):
            raise InvalidMessage("Skill.uri: no URI of a SKILL.md")
        if not isinstance(frontmatter, dict):
            raise InvalidMessage("Skill.frontmatter: no object")
        for name in ("name", "description"):
            if not isinstance(frontmatter.get(name), str):
                raise InvalidMessage("Skill.frontmatter.%s: no string" % name)
        self.resources = None if resources == _DYNAMIC else _files(self, resources)

    @property
    def uri(self) -> str:
        """URI of its SKILL.md, which is its identity with this server."""
        return str(self.raw["uri"])

    @property
    def frontmatter(self) -> JsonObject:
        """What the author wrote at the top of SKILL.md."""
        frontmatter: JsonObject = self.raw["frontmatter"]
        return frontmatter

    @property
    def name(self) -> str:
        """Its name: a label, which other skills may have too."""
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        """What it is for."""
        return str(self.frontmatter["description"])

    @property
    def dynamic(self) -> bool:
        """Whether it is made anew each time: then no digests are known, and nothing but the frontmatter is verified."""
        return self.resources is None

    def resolve(self, reference: str) -> str:
        """The URI of a file that SKILL.md refers to, as ``references/FORMS.md``."""
        root, path = self.uri[: -len(_MAIN_FILE)], posixpath.normpath(reference)
        return "%s/%s" % (root, path)

    def holds(self, uri: str) -> bool:
        """Whether the URI is one of its files; of a :attr:`dynamic` one, whether it is in its folder."""
        if self.resources is None:
            return _is_inside(self, uri)
        return any(each.uri == uri for each in self.resources)


class Skills:
    """The skills of one server. Any number of threads may use it.

    A file is read when it is asked for, never before. A skill whose SKILL.md turned out to be another than its entry
    says gives no other files either, until it is right or the server has another entry for it.

    :param client: of the server
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # by URI of the skill: the entry under which its SKILL.md was wrong; each use is one atomic step
        self._refused: Dict[str, Skill] = {}

    def offered(self) -> bool:
        """Whether the server declares the extension. Connects if need be.

        :raises ConnectFailed: with phase and cause
        """
        self._client.open()
        return self._client.capabilities.has("extensions", NAME)

    def list(self, *, timeout: Timeout = DEFAULT) -> List[Skill]:
        """The entries of the skills that the server lists, from all pages; it may have more, see :meth:`get`.

        Empty if the server does not declare the extension. An invalid entry is left out, with a warning.

        :param timeout: for each page; ``Timeouts.total`` bounds all of them together
        :raises PageLimit: with what was collected
        """
        if not self.offered():
            return []
        return list(self._client.iterate("skills/list", "skills", Skill, timeout=timeout))

    def get(self, uri: str, *, timeout: Timeout = DEFAULT) -> Skill:
        """The entry of one skill as it is now, listed or not.

        :param uri: of its SKILL.md
        :raises InvalidParams: the server has no such skill
        :raises MethodNotFound: it does not declare the extension
        :raises InvalidMessage: what it gives is no valid entry
        """
        method = "skills/get"
        if not self.offered():
            error = RpcError.of(_METHOD_NOT_FOUND, "the server does not declare the extension %r" % NAME)
            raise error.located(self._client.name, method)
        result = self._client.request(method, {"uri": uri}, timeout=timeout)
        try:
            skill = Skill(result.get("skill"))  # type: ignore[arg-type]  # which it checks
            if skill.uri != uri:
                raise InvalidMessage("the entry is that of %.200r" % skill.uri)
        except McpError as error:
            error.located(self._client.name, method)
            raise
        return skill

    def read(self, skill: Skill, *, timeout: Timeout = DEFAULT) -> str:
        """The text of SKILL.md, after digest, size and frontmatter were found to be what the entry says.

        :raises SkillMismatch: they are not
        """
        return self._read_main(skill, timeout)[1]

    def read_resource(self, skill: Skill, uri: str, *, timeout: Timeout = DEFAULT) -> ResourceContents:
        """A file of the skill, after digest and size were found to be what the entry says.

        :param uri: as in ``skill.resources``; see :meth:`Skill.resolve`
        :raises SkillMismatch: they are not, the entry has no such file, or SKILL.md was not what the entry says
        """
        if uri == skill.uri:
            return self._read_main(skill, timeout)[0]
        if self._refused.get(skill.uri) == skill:
            raise self._mismatch(skill, uri, "its SKILL.md is not what the entry says, so nothing else of it is read")
        return self._read(skill, uri, timeout)

    def _read_main(self, skill: Skill, timeout: Timeout) -> Tuple[ResourceContents, str]:
        try:
            contents = self._read(skill, skill.uri, timeout)
            text = self._verified_text(skill, contents)
        except SkillMismatch:
            self._refused[skill.uri] = skill
            raise
        self._refused.pop(skill.uri, None)
        return contents, text

    def _read(self, skill: Skill, uri: str, timeout: Timeout) -> ResourceContents:
        if not skill.holds(uri):
            raise self._mismatch(skill, uri, "its entry has no such file")
        found = self._client.read_resource(uri, timeout=timeout).contents
        if len(found) != 1:
            raise self._mismatch(skill, uri, "%d contents came instead of one" % len(found))
        try:
            data = found[0].data_bytes
        except InvalidMessage as error:
            raise self._mismatch(skill, uri, error.message) from None
        for known in skill.resources or ():
            if known.uri == uri:
                self._verify(skill, known, data)
        return found[0]

    def _verify(self, skill: Skill, known: SkillResource, data: bytes) -> None:
        if len(data) != known.size:
            problem = "%d bytes came where the entry says %d" % (len(data), known.size)
            raise self._mismatch(skill, known.uri, problem)
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        if digest != known.digest:
            raise self._mismatch(skill, known.uri, "its digest is %s where the entry says %s" % (digest, known.digest))

    def _verified_text(self, skill: Skill, contents: ResourceContents) -> str:
        from mcpsync.extensions import frontmatter

        try:
            text = contents.data_bytes.decode("utf-8")
            differing = frontmatter.difference(frontmatter.split(text), skill.frontmatter)
        except UnicodeDecodeError:
            raise self._mismatch(skill, skill.uri, "it is no text in UTF-8") from None
        except frontmatter.FrontmatterError as error:
            raise self._mismatch(skill, skill.uri, str(error)) from None
        if differing is not None:
            problem = "its frontmatter and the entry differ in the field %.100r" % differing
            raise self._mismatch(skill, skill.uri, problem)
        return text

    def _mismatch(self, skill: Skill, uri: str, problem: str) -> SkillMismatch:
        named = "%.300r" % uri if uri == skill.uri else "%.300r of the skill %.300r" % (uri, skill.uri)
        advice = "it is not used; if the skill was changed, skills/get has its new entry"
        return SkillMismatch(
            "%s: %s; %s" % (named, problem, advice),
            skill=skill.uri,
            uri=uri,
            server=self._client.name,
            method="resources/read",
        )


def _files(skill: Skill, resources: Any) -> Tuple[SkillResource, ...]:
    if not isinstance(resources, list):
        raise InvalidMessage("Skill.resources: neither an array nor 'dynamic'")
    files = tuple(_file(each, number) for number, each in enumerate(resources))
    uris = {each.uri for each in files}
    if len(uris) != len(files):
        raise InvalidMessage("Skill.resources: a file stands there twice")
    if skill.uri not in uris:
        raise InvalidMessage("Skill.resources: SKILL.md is missing")
    strays = [uri for uri in uris if not _is_inside(skill, uri)]
    if strays:
        raise InvalidMessage("Skill.resources: %.200r is not in the folder of the skill" % strays[0])
    return files


def _file(entry: Any, number: int) -> SkillResource:
    where = "Skill.resources: item %d" % number
    if not isinstance(entry, dict) or not isinstance(entry.get("uri"), str):
        raise InvalidMessage("%s: no object with a uri" % where)
    digest, size = entry.get("digest"), entry.get("size")
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise InvalidMessage("%s.digest: not 'sha256:' and 64 lowercase hexadecimal digits" % where)
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InvalidMessage("%s.size: no number of bytes" % where)
    return SkillResource(entry["uri"], digest, size)


def _is_inside(skill: Skill, uri: str) -> bool:
    root = skill.uri[: -len(_MAIN_FILE)] + "/"
    return uri.startswith(root) and ".." not in uri[len(root) :].split("/")
