"""The client that the official conformance suite runs: the public API, and which calls each scenario wants.

The suite gives the server's URL as the last argument, and the scenario's name, its revision of the protocol and what
else it wants to say in the environment.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import Any, Callable, Dict
from urllib.parse import urlsplit

import mcpsync
from mcpsync import Client
from mcpsync.auth.store import MemoryStore
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


def call_first_tool(client: Client) -> None:
    first = with_consent(client, client.list_tools)[0]
    with_consent(client, lambda: client.call_tool(first.name, arguments_for(first)))


def with_consent(client: Client, call: Callable[[], Any]) -> Any:
    """Make a call; sign in for it again where the server wants that, twice at most."""
    for _ in range(2):
        try:
            return call()
        except (mcpsync.NeedsLogin, mcpsync.InsufficientScope):
            client.login()
    return call()


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


def machine_options() -> Dict[str, Any]:
    """The grant of a scenario in which nobody signs in."""
    if "private_key_pem" in CONTEXT:
        key, algorithm = CONTEXT["private_key_pem"], CONTEXT["signing_algorithm"]
        return {"grant": "client_credentials", "private_key": key, "signing_algorithm": algorithm}
    if SCENARIO == "auth/client-credentials-basic":
        return {"grant": "client_credentials"}
    if "valid_jwt" in CONTEXT:
        return {"grant": "jwt_bearer", "assertion": CONTEXT["valid_jwt"]}
    if "idp_id_token" in CONTEXT:
        return {
            "grant": "enterprise",
            "id_token": CONTEXT["idp_id_token"],
            "idp_token_endpoint": CONTEXT["idp_token_endpoint"],
            "idp_client_id": CONTEXT["idp_client_id"],
        }
    return {}


def consent(url: str) -> str:
    """Says yes as a person in a browser does, and gives the address that the browser is sent to."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("GET", "%s?%s" % (parts.path, parts.query))
        return connection.getresponse().headers["Location"]
    finally:
        connection.close()


def main() -> None:
    calls = call_first_tool if SCENARIO.startswith("auth/") else CALLS.get(SCENARIO)
    if calls is None:
        sys.exit("no calls are known for the scenario %r" % SCENARIO)
    with mcpsync.connect(
        sys.argv[-1],
        protocol=REVISION if REVISION == "2026-07-28" else "legacy",
        timeouts=mcpsync.Timeouts(connect=10, call=20, close=2),
        elicitation=answer,
        sampling=lambda request: "text",
        roots=["."],
        extensions=skills.EXTENSION,
        auth=mcpsync.OAuth(
            way=consent,
            store=MemoryStore(),
            client_id=CONTEXT.get("client_id"),
            client_secret=CONTEXT.get("client_secret"),
            issuer=CONTEXT.get("issuer"),
            client_metadata_url="https://conformance-test.local/client-metadata.json",
            **machine_options(),
        ),
    ) as client:
        calls(client)


if __name__ == "__main__":
    main()
