"""What the demo server offers: tools, resources and a prompt, as a list of plain functions and texts.

To add a tool, write a method with :func:`tool` above it. It gets the :class:`~mcpsync.demo.call.Call` and the
arguments, and returns a text, or a dict for structured content.
"""

from __future__ import annotations

import binascii
import json
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from mcpsync.demo.call import Call, ToolFailed

__all__ = ["Offers"]

INTEGER = {"type": "integer", "minimum": 0}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
_PYTHON_TYPES: Dict[str, Tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}

# A red dot of one pixel.
PNG = binascii.a2b_base64(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
GREETINGS = {"english": "Hello", "french": "Bonjour", "german": "Guten Tag", "greek": "Kalimera"}
MOODS = ["calm", "careful", "cheerful", "curious", "grumpy"]


class Tool(NamedTuple):
    """A tool as ``tools/list`` describes it, and the method that does its work."""

    definition: Dict[str, Any]
    work: Callable[..., Any]


TOOLS: Dict[str, Tool] = {}


def _object_of(properties: Dict[str, Any]) -> Dict[str, Any]:
    required = [name for name, schema in properties.items() if "default" not in schema]
    return {"type": "object", "properties": properties, "required": required}


def tool(description: str, output: Optional[Dict[str, Any]] = None, **arguments: Any) -> Callable[[Any], Any]:
    """Offer the method below as a tool of the same name."""

    def offer(work: Callable[..., Any]) -> Callable[..., Any]:
        name = work.__name__
        definition = {"name": name, "description": description, "inputSchema": _object_of(arguments)}
        if output is not None:
            definition["outputSchema"] = _object_of(output)
        TOOLS[name] = Tool(definition, work)
        return work

    return offer


class Offers:
    """The tools, and what they share.

    :param tools_changed: tells the client that there are other tools now
    :param resource_updated: tells the client that a resource has other content now
    """

    def __init__(self, tools_changed: Callable[[], None], resource_updated: Callable[[str], None]) -> None:
        self._tools_changed = tools_changed
        self._resource_updated = resource_updated
        self._lock = threading.Lock()
        self._log: List[str] = []
        self._touched = 0
        self._with_bonus = False

    def record(self, line: str) -> None:
        """Add a line to the resource ``demo://log``."""
        with self._lock:
            self._log.append(line)
        self._resource_updated("demo://log")

    # --- tools

    def tools(self) -> List[Dict[str, Any]]:
        """The definitions of the tools there are now."""
        return [each.definition for name, each in TOOLS.items() if name != "bonus" or self._with_bonus]

    def call_tool(self, call: Call, name: Any, arguments: Any) -> Optional[Dict[str, Any]]:
        """The result of a tool; None if there is no such tool."""
        if not any(definition["name"] == name for definition in self.tools()):
            return None
        chosen = TOOLS[name]
        try:
            _check(chosen.definition["inputSchema"], arguments)
            outcome = chosen.work(self, call, **arguments)
        except ToolFailed as failure:
            return {"content": [{"type": "text", "text": str(failure)}], "isError": True}
        if isinstance(outcome, dict):
            return {"content": [{"type": "text", "text": json.dumps(outcome)}], "structuredContent": outcome}
        return {"content": [{"type": "text", "text": outcome}]}

    @tool("Add two numbers.", output={"sum": NUMBER}, a=NUMBER, b=NUMBER)
    def add(self, call: Call, a: float, b: float) -> Dict[str, Any]:
        call.log("debug", "adding %s and %s" % (a, b))
        return {"sum": a + b}

    @tool("Say the text again.", text=STRING)
    def echo(self, call: Call, text: str) -> str:
        return text

    @tool("Count to n and tell the progress, with a delay (in seconds) before each number.",
          n=INTEGER, delay={**NUMBER, "minimum": 0, "default": 0.1})  # fmt: skip
    def count(self, call: Call, n: int, delay: float = 0.1) -> str:
        call.log("info", "counting to %d" % n)
        for number in range(1, n + 1):
            call.pause(delay)
            call.progress(number, n, "counted to %d of %d" % (number, n))
        return "counted to %d" % n

    @tool("Do nothing for some seconds. Can be cancelled: see the resource demo://log.", seconds=NUMBER)
    def slow(self, call: Call, seconds: float) -> str:
        call.pause(seconds)
        return "slept for %s seconds" % seconds

    @tool("Ask the user for a name (elicitation), and greet.")
    def greet(self, call: Call) -> str:
        name = {"type": "string", "title": "Your name", "minLength": 1, "maxLength": 50}
        polite = {"type": "boolean", "title": "Politely?", "default": True}
        schema = {"type": "object", "properties": {"name": name, "polite": polite}, "required": ["name"]}
        question = {"message": "What is your name?", "requestedSchema": schema}
        answer = call.ask("name", "elicitation/create", question)
        content = answer.get("content")
        if answer.get("action") != "accept" or not isinstance(content, dict):
            return "No name, no greeting."
        return "%s, %s!" % ("Good day" if content.get("polite", True) else "Hi", content.get("name"))

    @tool("Pass a question on to the client's model (sampling).", question=STRING)
    def ask_model(self, call: Call, question: str) -> str:
        message = {"role": "user", "content": {"type": "text", "text": question}}
        answer = call.ask("model", "sampling/createMessage", {"messages": [message], "maxTokens": 100})
        content = answer.get("content")
        blocks = content if isinstance(content, list) else [content]
        return "The model says: " + "".join(block.get("text", "") for block in blocks if isinstance(block, dict))

    @tool("List the client's roots.")
    def roots(self, call: Call) -> str:
        listed = call.ask("roots", "roots/list", {}).get("roots")
        return "\n".join(str(root["uri"]) for root in listed) if listed else "no roots"

    @tool("Fail, as a tool does.")
    def fail(self, call: Call) -> str:
        raise ToolFailed("this tool always fails")

    @tool("Add the tool 'bonus', or take it away again.")
    def toggle(self, call: Call) -> str:
        with self._lock:
            self._with_bonus = there = not self._with_bonus
        self._tools_changed()
        return "the tool 'bonus' is %s" % ("there" if there else "gone")

    @tool("Change the resource demo://counter.")
    def touch(self, call: Call) -> str:
        with self._lock:
            self._touched += 1
            touched = self._touched
        self._resource_updated("demo://counter")
        return "touched %d times" % touched

    @tool("A tool that is not always there.")
    def bonus(self, call: Call) -> str:
        return "a bonus"

    # --- resources

    def resources(self) -> List[Dict[str, Any]]:
        """What ``resources/list`` shows."""
        return [
            {"uri": "demo://hello", "name": "hello", "mimeType": "text/plain", "description": "A short text."},
            {"uri": "demo://dot", "name": "dot", "mimeType": "image/png", "size": len(PNG)},
            {"uri": "demo://log", "name": "log", "mimeType": "text/plain", "description": "What happened here."},
            {"uri": "demo://counter", "name": "counter", "mimeType": "text/plain", "description": "Try touch()."},
        ]

    def resource_templates(self) -> List[Dict[str, Any]]:
        """What ``resources/templates/list`` shows."""
        greeting = {"uriTemplate": "demo://greeting/{language}", "name": "greeting", "mimeType": "text/plain"}
        return [greeting]

    def read_resource(self, uri: Any) -> Optional[Dict[str, Any]]:
        """The content of a resource; None if there is no such resource."""
        if uri == "demo://dot":
            blob = binascii.b2a_base64(PNG, newline=False).decode()
            return {"uri": uri, "mimeType": "image/png", "blob": blob}
        with self._lock:
            texts = {
                "demo://hello": "Hello from a server in plain Python.",
                "demo://log": "\n".join(self._log),
                "demo://counter": str(self._touched),
                **{"demo://greeting/" + language: greeting for language, greeting in GREETINGS.items()},
            }
        text = texts.get(uri) if isinstance(uri, str) else None
        return None if text is None else {"uri": uri, "mimeType": "text/plain", "text": text}

    # --- prompts

    def prompts(self) -> List[Dict[str, Any]]:
        """What ``prompts/list`` shows."""
        hero = {"name": "hero", "description": "Whom it is about.", "required": True}
        mood = {"name": "mood", "description": "One of: %s." % ", ".join(MOODS)}
        return [{"name": "story", "description": "Ask for a short story.", "arguments": [hero, mood]}]

    def get_prompt(self, name: Any, arguments: Any) -> Optional[Dict[str, Any]]:
        """The messages of a prompt; None if there is no such prompt, or its argument is missing."""
        if name != "story" or not isinstance(arguments, dict) or "hero" not in arguments:
            return None
        text = "Tell a %s story about %s." % (arguments.get("mood", MOODS[0]), arguments["hero"])
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": "A short story.", "messages": [message]}

    def complete(self, reference: Dict[str, Any], argument: Any, typed: str) -> List[str]:
        """The values of a prompt's or a template's argument that begin with what was typed."""
        choices: List[str] = []
        if (reference.get("name"), argument) == ("story", "mood"):
            choices = MOODS
        elif (reference.get("uri"), argument) == ("demo://greeting/{language}", "language"):
            choices = list(GREETINGS)
        return [choice for choice in choices if choice.startswith(typed)]


def _check(schema: Dict[str, Any], arguments: Any) -> None:
    """Say clearly which argument is wrong: the model reads it, and tries again."""
    if not isinstance(arguments, dict):
        raise ToolFailed("arguments must be an object")
    for name in schema["required"]:
        if name not in arguments:
            raise ToolFailed("the argument %r is missing" % name)
    for name, value in arguments.items():
        expected = schema["properties"].get(name)
        if expected is None:
            raise ToolFailed("there is no argument %r" % name)
        if isinstance(value, bool) or not isinstance(value, _PYTHON_TYPES[expected["type"]]):
            raise ToolFailed("the argument %r must be of type %s" % (name, expected["type"]))
