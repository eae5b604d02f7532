"""A complete agent, synchronous from end to end: python agent_loop.py mcp.json "What is in my notes?"

Any server that speaks OpenAI's chat completions will do: OPENAI_BASE_URL, OPENAI_API_KEY and MODEL say which.
"""

import os
import sys

import requests

import mcpsync

TURNS = 20


def ask_model(messages, tools):
    """One completion: the assistant's message."""
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    response = requests.post(
        base + "/chat/completions",
        headers={"Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")},
        json={"model": os.environ.get("MODEL", "gpt-4o"), "messages": messages, **({"tools": tools} if tools else {})},
        timeout=300,
    )
    response.raise_for_status()
    return response.json()["choices"][0]["message"]


def run(host, question, ask=ask_model):
    """Let the model use the tools until it answers in words."""
    messages = [{"role": "user", "content": question}]
    revision, tools = None, []
    for _ in range(TURNS):
        if host.revision != revision:  # servers come, go and change while the agent works
            revision, tools = host.revision, host.export_tools("openai")
        answer = ask(messages, tools)
        messages.append(answer)
        if not answer.get("tool_calls"):
            return answer["content"]
        messages += host.dispatch_all("openai", answer["tool_calls"])
    return "I gave up after %d turns." % TURNS


def approve(request):
    """Asked once for each tool that may do harm, and each time for one that says that it destroys."""
    return input("Call %s with %s? [y/N] " % (request.name, request.arguments)).lower() == "y"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    config, question = sys.argv[1:]
    with mcpsync.Host.from_config(config, context_tools=True, approve=approve) as host:
        for row in host.status():
            print("%s: %s %s" % (row.name, row.state, row.error or ""), file=sys.stderr)
        print(run(host, question))


if __name__ == "__main__":
    main()
