"""The agent loop of the docs, against a scripted model that speaks HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from mcpsync import Host
from tests.host.inside import inside
from tests.host.watching import DEMO

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "agent_loop.py"
Message = Dict[str, Any]


def calls(*wanted: Any) -> Message:
    """An assistant's message with tool calls."""
    made = [
        {"id": "c%d" % number, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def script(request: Message) -> Message:
    """A model that adds two numbers, reads the sum back, and says it."""
    messages: List[Message] = request["messages"]
    assert "mcp__demo__add" in [tool["function"]["name"] for tool in request["tools"]]
    brought = [message["content"] for message in messages if message["role"] == "tool"]
    if not brought:
        return calls(("mcp__demo__add", {"a": 20, "b": 22}), ("mcp__demo__echo", {"text": messages[0]["content"]}))
    if len(brought) == 2:
        return calls(("mcp__demo__ecko", {}))
    assert brought[2].startswith("Error: there is no tool 'mcp__demo__ecko'; did you mean mcp__demo__echo")
    return {"role": "assistant", "content": "%s is %s" % (brought[1], brought[0])}


@pytest.fixture
def model() -> Iterator[Callable[[], str]]:
    """The URL of the scripted model."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"choices": [{"message": script(request)}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield lambda: "http://127.0.0.1:%d" % server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    assert "async" not in EXAMPLE.read_text()


def test_as_a_program(model: Callable[[], str], tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"demo": {**DEMO, "trust_level": "trusted"}}}))
    environ = {**os.environ, "OPENAI_BASE_URL": model(), "NO_PROXY": "127.0.0.1", "MCPSYNC_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), str(config), "What is 20 + 22?"],
        env=environ,
        input="y\n" * 10,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith('What is 20 + 22? is {"sum": 42}')
    assert "demo: ready" in done.stderr


def test_without_a_question_it_says_how_it_is_started() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("A complete agent, synchronous from end to end: python agent_loop.py mcp.json")


def test_servers_that_come_while_it_works() -> None:
    spec = spec_from_file_location("agent_loop", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    seen: List[List[str]] = []

    with Host.from_config({"mcpServers": {}}, approve=lambda _: "once") as host:

        def ask(messages: List[Message], tools: List[Message]) -> Message:
            seen.append([tool["function"]["name"] for tool in tools])
            if len(seen) == 1:
                host.connect_all({"new": inside()})
                return calls(("mcp__new__echo", {"text": "hello"}))
            return {"role": "assistant", "content": messages[-1]["content"]}

        assert '"text": "hello"' in example.run(host, "?", ask)
        assert seen == [[], ["mcp__new__echo"]]
        endless = example.run(host, "?", lambda messages, tools: calls(("mcp__new__echo", {})))
        assert endless == "I gave up after 20 turns."
