"""Headers that a command gives."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcpsync.config import load
from mcpsync.errors import ConnectFailed
from mcpsync.host.headers_helper import HeadersHelper
from mcpsync.host.reach import reach

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the commands are for a POSIX shell")

URL = "https://a.example/mcp"


def test_it_is_run_once_a_minute(tmp_path: Path) -> None:
    now = [0.0]
    log = tmp_path / "log"
    script = tmp_path / "helper.py"
    script.write_text(
        "import json, os\n"
        "open(%r, 'a').write('x')\n"
        "print(json.dumps({'X-Who': os.environ['CLAUDE_CODE_MCP_SERVER_NAME'],"
        " 'X-Where': os.environ['CLAUDE_CODE_MCP_SERVER_URL']}))\n" % str(log)
    )
    helper = HeadersHelper("%s %s" % (sys.executable, script), "web", URL, clock=lambda: now[0])
    assert helper() == {"X-Who": "web", "X-Where": URL}
    now[0] = 59.0
    helper()
    assert log.read_text() == "x"
    now[0] = 60.0
    helper()
    assert log.read_text() == "xx"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo s3cret >&2; exit 3", "ended with code 3"),
        ("echo s3cret", "wrote no JSON object of headers"),
        ("echo '{\"A\": 1}'", "wrote no JSON object of headers"),
    ],
)
def test_what_goes_wrong_is_said_without_what_it_wrote(command: str, why: str) -> None:
    with pytest.raises(ConnectFailed, match="headersHelper") as caught:
        HeadersHelper(command, "web", URL)()
    assert why in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.server == "web"


def test_its_time_is_limited_and_nothing_of_it_stays(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    begun = time.monotonic()
    with pytest.raises(ConnectFailed, match=r"took longer than 0\.5 s"):
        HeadersHelper("sleep 60 & echo $! > %s; sleep 60" % pid_file, "web", URL, seconds=0.5)()
    assert time.monotonic() - begun < 20
    child = int(pid_file.read_text())
    for _ in range(200):
        if not _runs(child):
            return
        time.sleep(0.02)  # the system reaps it
    raise AssertionError("its child still runs")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path("/proc/%d/stat" % pid)
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_an_entry_with_such_a_command() -> None:
    entry: Any = {"url": URL, "headers": {"A": "1", "B": "1"}, "headersHelper": "echo '%s'" % json.dumps({"b": "2"})}
    _, options = reach(load({"mcpServers": {"web": entry}}).servers["web"], {"headers": {"C": "3"}})
    assert options["headers"]() == {"A": "1", "b": "2", "C": "3"}
