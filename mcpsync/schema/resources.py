"""The parts of a schema that have names: resources by ``$id``, places in them by anchor. Nothing is ever fetched."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple
from urllib.parse import unquote, urldefrag, urljoin

from mcpsync.schema import dialects
from mcpsync.schema.dialects import Dialect, dialect_of
from mcpsync.schema.structure import children, follow
from mcpsync.schema.work import Unusable

__all__ = ["Resource", "Resources", "Target"]

_MOST_URI = 2_000


class Resource:
    """A schema with a URI of its own, without those within it that have one.

    :ivar uri: empty for a root without ``$id``
    :ivar dialect: that it is written in
    :ivar root: the schema
    :ivar anchors: schemas in it by the names that they have for references
    :ivar dynamic: those whose name can be taken over by an outer resource
    """

    __slots__ = ("anchors", "dialect", "dynamic", "root", "uri")

    def __init__(self, uri: str, dialect: Dialect, root: Any) -> None:
        self.uri = uri
        self.dialect = dialect
        self.root = root
        self.anchors: Dict[str, Any] = {}
        self.dynamic: Dict[str, Any] = {}


class Target(NamedTuple):
    """Where a reference leads.

    :ivar dynamic: the name by which an outer resource may take its place; empty if none may
    :ivar known: the schema stands where a schema belongs
    """

    schema: Any
    resource: Resource
    dynamic: str = ""
    known: bool = True


class Resources:
    """All that references can lead to: the schema that is used, and the meta-schemas."""

    def __init__(self) -> None:
        self._by_uri: Dict[str, Resource] = {}
        self._of: Dict[int, Resource] = {}

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._by_uri.values()))

    def add(self, schema: Any, uri: str = "") -> Resource:
        """A whole schema.

        :raises Unusable: it has a dialect that is not understood
        """
        resource = self._by_uri[uri] = Resource(uri, dialect_of(schema), schema)
        self.adopt(schema, resource)
        return self._of.get(id(schema), resource)

    def adopt(self, schema: Any, resource: Resource) -> None:
        """A schema that stands in a resource, and all within it.

        :raises Unusable: it has a dialect that is not understood
        """
        waiting: List[Tuple[Any, Resource]] = [(schema, resource)]
        while waiting:
            node, inside = waiting.pop()
            if not isinstance(node, dict):
                continue
            inside = self._of[id(node)] = self._named(node, inside)
            waiting.extend((child, inside) for _, child in children(node))

    def _named(self, node: Dict[str, Any], inside: Resource) -> Resource:
        """The resource that a schema belongs to; its names are noted."""
        name = node.get("$id")
        modern = inside.dialect.modern
        if isinstance(name, str) and (modern or "$ref" not in node):
            uri, fragment = _joined(inside.uri, name)
            if name.startswith("#"):
                inside.anchors[fragment] = node  # draft-07; 2020-12 does not allow it
            elif node is not inside.root or inside.uri != uri:
                inside = self._by_uri[uri] = Resource(uri, dialect_of(node, inside.dialect), node)
                if node is self._root_of(""):
                    self._by_uri[""] = inside
        if modern:
            for key, tables in (
                ("$anchor", (inside.anchors,)),
                ("$dynamicAnchor", (inside.anchors, inside.dynamic)),
            ):
                name = node.get(key)
                if isinstance(name, str):
                    for table in tables:
                        table[name] = node
        return inside

    def _root_of(self, uri: str) -> Any:
        resource = self._by_uri.get(uri)
        return None if resource is None else resource.root

    def of(self, schema: Any, outer: Resource) -> Resource:
        """The resource that a schema belongs to."""
        return self._of.get(id(schema), outer) if isinstance(schema, dict) else outer

    def target(self, reference: str, inside: Resource) -> Target:
        """Where a reference leads.

        :raises Unusable: it leads out of the schema, or nowhere
        """
        if reference.startswith("#"):  # nearly all of them; taking a URI apart costs a multiple
            return self._place(reference, reference[1:], inside)
        uri, fragment = _joined(inside.uri, reference)
        resource = self._by_uri.get(uri)
        if resource is None:
            document = dialects.document(uri)
            if document is None:
                raise Unusable("the $ref %.100r leads out of the schema; nothing is fetched" % reference)
            resource = self.add(document, uri)
        return self._place(reference, fragment, resource)

    def _place(self, reference: str, fragment: str, resource: Resource) -> Target:
        if not fragment:
            return Target(resource.root, resource)
        if fragment.startswith("/"):
            found, schema = follow(fragment, resource.root)
            if not found:
                raise Unusable("the $ref %.100r leads nowhere" % reference)
            if not isinstance(schema, (dict, bool)):
                raise Unusable("the $ref %.100r leads to no schema" % reference)
            known = id(schema) in self._of or isinstance(schema, bool)
            return Target(schema, self.of(schema, resource), known=known)
        name = unquote(fragment)
        if name not in resource.anchors:
            raise Unusable("the $ref %.100r leads nowhere" % reference)
        return Target(resource.anchors[name], resource, name if name in resource.dynamic else "")


def _joined(base: str, reference: str) -> Tuple[str, str]:
    """The URI that is meant, and the fragment."""
    if len(base) + len(reference) > _MOST_URI:
        raise Unusable(
            "the URI %.100r and what it is relative to have more than %d characters" % (reference, _MOST_URI)
        )
    if reference.startswith("#"):  # urljoin does not know that every URI can have a fragment
        return base, reference[1:]
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        raise Unusable("the $ref %.100r is no URI" % reference) from None
    return uri, fragment
