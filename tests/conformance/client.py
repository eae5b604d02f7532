"""The client that the official conformance suite runs: the public API, and which calls each scenario wants.

The suite gives the server's URL as the last argument, and the scenario's name, its revision of the protocol and what
else it wants to say in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict

import mcpsync
from mcpsync import Client
from mcpsync.extensions import skills
from mcpsync.types import ElicitationRequest, Tool

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")

SAMPLES = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


def arguments_for(tool: Tool) -> Dict[str, Any]:
    properties = tool.input_schema.get("properties", {})
    return {name: SAMPLES.get(schema.get("type"), "text") for name, schema in properties.items()}


def list_tools(client: Client) -> None:
    client.list_tools()


def call_all_tools(client: Client) -> None:
    for tool in client.list_tools():
        client.call_tool(tool.name, arguments_for(tool), check=False)


def add_numbers(client: Client) -> None:
    client.list_tools()
    client.call_tool("add_numbers", {"a": 5, "b": 3})


def elicit_defaults(client: Client) -> None:
    client.list_tools()
    client.call_tool("test_client_elicitation_defaults", {})


def reconnect(client: Client) -> None:
    client.list_tools()
    client.call_tool("test_reconnection", {})


def use_everything(client: Client) -> None:
    call_all_tools(client)
    for resource in client.list_resources():
        client.read_resource(resource.uri)
    for prompt in client.list_prompts():
        client.get_prompt(prompt.name, {})


def replay_calls(client: Client) -> None:
    client.list_tools()
    for call in CONTEXT["toolCalls"]:
        client.call_tool(call["name"], call["arguments"], check=False)


def answer_questions(client: Client) -> None:
    client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        client.call_tool("test_mrtr_" + name, {}, check=False)


def echo_schema(client: Client) -> None:
    schemas = {tool.name: tool.input_schema for tool in client.list_tools()}
    client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


def list_skills(client: Client) -> None:
    skills.Skills(client).list()


def load_skills(client: Client) -> None:
    offered = skills.Skills(client)
    for skill in offered.list():
        offered.read(skill)
        for resource in skill.resources or ():
            offered.read_resource(skill, resource.uri)


CALLS = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "request-metadata": add_numbers,
    "elicitation-sep1034-client-defaults": elicit_defaults,
    "sse-retry": reconnect,
    "http-standard-headers": use_everything,
    "http-custom-headers": replay_calls,
    "http-invalid-tool-headers": call_all_tools,
    "sep-2322-client-request-state": answer_questions,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": load_skills,
    "sep-2640-client-verify-size": load_skills,
    "sep-2640-client-verify-frontmatter": load_skills,
}


def answer(request: ElicitationRequest) -> Dict[str, Any]:
    """Says yes where a confirmation is asked for, and else leaves everything at its default."""
    return {"confirmed": True} if "confirmed" in (request.requested_schema or {}).get("properties", {}) else {}


def main() -> None:
    if SCENARIO not in CALLS:
        sys.exit("no calls are known for the scenario %r" % SCENARIO)
    with mcpsync.connect(
        sys.argv[-1],
        protocol=REVISION if REVISION == "2026-07-28" else "legacy",
        timeouts=mcpsync.Timeouts(connect=10, call=20, close=2),
        elicitation=answer,
        sampling=lambda request: "text",
        roots=["."],
        extensions=skills.EXTENSION,
    ) as client:
        CALLS[SCENARIO](client)


if __name__ == "__main__":
    main()
