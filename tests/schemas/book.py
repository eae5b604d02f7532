"""What a client sends, checked against the official JSON schema of its revision.

``SchemaBook().validate_client_message(revision, message)`` raises :class:`SchemaViolation`, which says what is
wrong and where. The schemas leave some things to the prose of the specification; where that is plain, it is
checked too: no foreign members in the envelope, batches in 2025-03-26 alone and never with ``initialize``.

In one place the JSON schemas are wrong: they are made from ``schema.ts``, which the specification calls the source of
truth and which lets an elicitation be answered with any ``number``; the JSON says ``integer``.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Collection, Dict, FrozenSet, List, Mapping, Optional, Tuple

from jsonschema import validators
from jsonschema.exceptions import best_match

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
MODERN = "2026-07-28"
BATCHING = "2025-03-26"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

RESULT_OF = {
    "ping": "EmptyResult",
    "sampling/createMessage": "CreateMessageResult",
    "roots/list": "ListRootsResult",
    "elicitation/create": "ElicitResult",
    "tasks/get": "GetTaskResult",
    "tasks/result": "GetTaskPayloadResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
}
"""The method of a server's request to the definition of what the client answers."""

Message = Mapping[str, Any]


class SchemaViolation(AssertionError):
    """A message that the schema, or the envelope's rules, do not allow."""


class SchemaBook:
    """The five schemas, read when asked for and kept.

    :param extension_methods: methods of extensions or of the test's own, which no schema names: only their
        envelope is checked, and in the modern era the metadata
    """

    def __init__(self, extension_methods: Collection[str] = ()) -> None:
        self._extension_methods = frozenset(extension_methods)

    def validate_client_message(self, revision: Optional[str], message: Any, answering: Optional[str] = None) -> None:
        """Check one message, or one batch, that a client sends.

        :param revision: the revision in force; None while none is known, when the message has to name it itself.
            ``initialize`` is always held to the revision that it asks for.
        :param message: the decoded JSON
        :param answering: for a result: the method of the server's request, which decides what the result must
            look like; without it any client result will do
        :raises SchemaViolation: and says where
        """
        if isinstance(message, list):
            self._batch(revision, message)
            return
        if not isinstance(message, dict):
            raise SchemaViolation("a message must be an object, not %r" % (message,))
        held_to = self._revision_of(revision, message)
        if "method" in message:
            self._call(held_to, message)
        elif "error" in message:
            self._shape(held_to, message, _first(held_to, "JSONRPCErrorResponse", "JSONRPCError"), "jsonrpc id error")
        elif "result" in message:
            self._result(held_to, message, answering)
        else:
            raise SchemaViolation("neither request, notification nor response: %s" % _short(message))

    def _batch(self, revision: Optional[str], messages: List[Any]) -> None:
        if revision != BATCHING:
            raise SchemaViolation("a batch in revision %s; only %s has them" % (revision, BATCHING))
        if not messages:
            raise SchemaViolation("an empty batch")
        for index, message in enumerate(messages):
            if not isinstance(message, dict):
                raise SchemaViolation("item %d of the batch is no object: %r" % (index, message))
            if message.get("method") == "initialize":
                raise SchemaViolation("initialize must not be part of a batch")
            self.validate_client_message(revision, message)

    def _revision_of(self, revision: Optional[str], message: Message) -> str:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        claimed = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if message.get("method") == "initialize":
            revision = params.get("protocolVersion")
        elif revision is None:
            revision = claimed
        elif revision == MODERN and claimed is not None and claimed != revision:
            raise SchemaViolation("_meta claims revision %r where %r is in force" % (claimed, revision))
        if revision not in REVISIONS:
            raise SchemaViolation("no known revision (%r) for %s" % (revision, _short(message)))
        return revision

    def _call(self, revision: str, message: Message) -> None:
        method = message["method"]
        request = "id" in message
        self._shape(
            revision,
            message,
            "JSONRPCRequest" if request else "JSONRPCNotification",
            "jsonrpc id method params" if request else "jsonrpc method params",
        )
        definition = _client_methods(revision)["request" if request else "notification"].get(method)
        if definition is not None:
            _check(revision, definition, message, str(method))
        elif method not in self._extension_methods:
            kind = "request" if request else "notification"
            raise SchemaViolation("revision %s has no client %s %r" % (revision, kind, method))
        elif request and revision == MODERN:
            _check(revision, "RequestParams", message.get("params", {}), "%s params" % method)

    def _result(self, revision: str, message: Message, answering: Optional[str]) -> None:
        self._shape(
            revision, message, _first(revision, "JSONRPCResultResponse", "JSONRPCResponse"), "jsonrpc id result"
        )
        definition = "ClientResult" if answering is None else RESULT_OF.get(answering, "ClientResult")
        if definition not in _definitions(revision):
            raise SchemaViolation("revision %s has no %s for a client to answer" % (revision, answering))
        _check(revision, definition, message["result"], "the result of %s" % (answering or "a server's request"))

    @staticmethod
    def _shape(revision: str, message: Message, definition: str, members: str) -> None:
        _check(revision, definition, message, "the envelope of %s" % _short(message))
        foreign = set(message) - set(members.split())
        if foreign:
            raise SchemaViolation("foreign members %s in %s" % (sorted(foreign), _short(message)))


@functools.cache
def _schema(revision: str) -> Dict[str, Any]:
    file = Path(__file__).resolve().parent / revision / "schema.json"
    schema: Dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    answer = schema.get("$defs", schema.get("definitions", {})).get("ElicitResult")
    if answer is not None:
        values = answer["properties"]["content"]["additionalProperties"]
        scalars = values["anyOf"][-1] if "anyOf" in values else values
        scalars["type"][scalars["type"].index("integer")] = "number"
    return schema


def _definitions_key(revision: str) -> str:
    """Draft 7 (to 2025-06-18) says ``definitions``, 2020-12 says ``$defs``."""
    return "$defs" if "$defs" in _schema(revision) else "definitions"


def _definitions(revision: str) -> Dict[str, Any]:
    return dict(_schema(revision)[_definitions_key(revision)])


def _first(revision: str, *names: str) -> str:
    """The name that this revision uses for a definition that was renamed."""
    return next(name for name in names if name in _definitions(revision))


@functools.cache
def _client_methods(revision: str) -> Dict[str, Dict[str, str]]:
    """``request`` and ``notification``: method to the definition's name, of what a client may send."""
    found: Dict[str, Dict[str, str]] = {}
    for kind, union in (("request", "ClientRequest"), ("notification", "ClientNotification")):
        methods = (_methods_of(revision, name) for name in _members(revision, union))
        found[kind] = dict(methods)
    return found


def _members(revision: str, union: str) -> FrozenSet[str]:
    """The definitions that a union is made of; itself, if it is no union."""
    schema = _definitions(revision)[union]
    return frozenset(_name(member["$ref"]) for member in schema["anyOf"]) if "anyOf" in schema else frozenset([union])


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _methods_of(revision: str, definition: str) -> Tuple[str, str]:
    return _definitions(revision)[definition]["properties"]["method"]["const"], definition


@functools.cache
def _validator(revision: str, definition: str) -> Any:
    schema, key = _schema(revision), _definitions_key(revision)
    rooted = {"$schema": schema["$schema"], key: schema[key], "$ref": "#/%s/%s" % (key, definition)}
    return validators.validator_for(rooted)(rooted)


def _check(revision: str, definition: str, instance: Any, what: str) -> None:
    error = best_match(_validator(revision, definition).iter_errors(instance))
    if error is not None:
        where = "".join("[%d]" % step if isinstance(step, int) else ".%s" % step for step in error.absolute_path)
        raise SchemaViolation(
            "%s breaks %s of %s at %s: %s" % (what, definition, revision, where or "its root", error.message)
        )


def _short(message: Message) -> str:
    text = json.dumps(message, ensure_ascii=False, default=repr)
    return text if len(text) <= 200 else text[:200] + "…"
