"""Resources and prompts as texts for a model: compact listings with bounds, one item at a time.

Pure functions of what a server sent.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from mcpsync.host.render import render_blocks
from mcpsync.types import Prompt, PromptResult, ReadResult

__all__ = ["listing", "prompt_listing", "prompt_text", "resource_text"]

MOST_ENTRIES = 200
MOST_OF_A_FIELD = 2_000
MOST_OF_A_LISTING = 60_000

_FIELDS = ("uri", "uriTemplate", "name", "title", "description", "mimeType")


def listing(items: Sequence[Any], what: str, note: Optional[str] = None) -> Tuple[str, List[Dict[str, Any]]]:
    """Resources or templates, and the same as JSON.

    :param what: they are, in the plural
    :param note: what there is to say of the listing, as that it is not whole
    """
    return _bounded([_compact(item.to_wire()) for item in items[:MOST_ENTRIES]], len(items), what, note)


def prompt_listing(prompts: Sequence[Prompt], note: Optional[str] = None) -> Tuple[str, List[Dict[str, Any]]]:
    """Prompts with the arguments that they take, and the same as JSON."""
    entries = []
    for prompt in prompts[:MOST_ENTRIES]:
        entry = _compact(prompt.to_wire())
        arguments = [
            {
                **_compact(argument.to_wire()),
                **({} if argument.required is None else {"required": bool(argument.required)}),
            }
            for argument in prompt.arguments or ()
        ]
        entries.append({**entry, "arguments": arguments} if arguments else entry)
    return _bounded(entries, len(prompts), "prompts", note)


def _compact(wire: Mapping[str, Any]) -> Dict[str, Any]:
    return {key: _cut(wire[key]) for key in _FIELDS if isinstance(wire.get(key), str) and wire[key]}


def _cut(text: str) -> str:
    if len(text) <= MOST_OF_A_FIELD:
        return text
    return "%s... [%d characters in all]" % (text[:MOST_OF_A_FIELD], len(text))


def _bounded(
    entries: List[Dict[str, Any]], total: int, what: str, note: Optional[str]
) -> Tuple[str, List[Dict[str, Any]]]:
    shown: List[Dict[str, Any]] = []
    size = 0
    for entry in entries:
        size += len(json.dumps(entry, ensure_ascii=False, indent=2))
        if shown and size > MOST_OF_A_LISTING:
            break
        shown.append(entry)
    lines = [json.dumps(shown, ensure_ascii=False, indent=2)] if shown else ["There are no %s." % what]
    if total > len(shown):
        lines.append("[%d more %s not shown; %d in all]" % (total - len(shown), what, total))
    if note:
        lines.append("[%s]" % note)
    return "\n".join(lines), shown


def resource_text(result: ReadResult) -> str:
    """What a resource holds, each part under its URI; bytes are described, not shown. Empty if it holds nothing."""
    parts = []
    for part in result.contents:
        kind = part.mime_type or ("text" if part.text is not None else "bytes")
        if part.text is not None:
            parts.append("[resource: %s (%s)]\n%s" % (part.uri, kind, part.text))
        else:
            size = len(part.blob or "")
            parts.append("[resource: %s (%s), %d base64 characters, not shown]" % (part.uri, kind, size))
    return "\n\n".join(parts)


def prompt_text(name: str, result: PromptResult) -> Tuple[str, List[str]]:
    """The messages of a prompt, each under its role: so none passes for one that the assistant has said itself.

    Empty if there are none. And what of it the server said.
    """
    spoken = [render_blocks([message.content.to_wire()]) for message in result.messages]
    parts = ["[%s]\n%s" % (message.role, text) for message, text in zip(result.messages, spoken)]
    if parts and result.description:
        parts.insert(0, "[prompt: %s] %s" % (name, result.description))
    return "\n\n".join(parts), [result.description or "", *spoken]
