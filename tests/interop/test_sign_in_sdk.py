"""A person signs in, with a browser, at the authorization server of the official SDK (PyPI ``mcp`` 2.3)."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import mcpsync
from mcpsync.auth.browser import Browser
from mcpsync.deadline import Deadline
from tests.interop.chromium import Chromium, opener
from tests.interop.http_peers import HttpPeer
from tests.interop.signing import PROCESS_SECONDS, User, control

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def running_peer(mcp2_auth_command: List[str]) -> Iterator[HttpPeer]:
    with HttpPeer(mcp2_auth_command) as peer:
        yield peer


@pytest.fixture
def peer(running_peer: HttpPeer) -> HttpPeer:
    control(running_peer, "revoke")
    return running_peer


def signs_in(chromium: Chromium, decision: str = "Allow") -> None:
    """What a person does on the pages."""
    chromium.fill("person", "Ada")
    chromium.press("Sign in")
    chromium.sees("mcpsync asks Ada for notes")
    chromium.press(decision)


def oauth(chromium: Chromium, decision: str = "Allow", **options: Any) -> mcpsync.OAuth:
    """With a person at the browser."""

    def pages() -> None:
        signs_in(chromium, decision)

    return mcpsync.OAuth(way=Browser(opener=opener(chromium, pages)), **options)


def by_many_threads(action: Callable[[], Any]) -> None:
    """Have four threads do it at the same time."""
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(action) for _ in range(4)]:
            done.result()


def says(url: str) -> str:
    return "Ada at %s for notes" % url


def events(peer: HttpPeer, *names: str) -> List[int]:
    """How often these have happened."""
    counted = peer.counts("events")
    return [counted.get(name, 0) for name in names]


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_a_person_signs_in_and_other_processes_need_none(
    protocol: str, peer: HttpPeer, chromium: Chromium, user: User
) -> None:
    before = events(peer, "registered", "asked", "exchanged")
    with mcpsync.connect(peer.url, auth=oauth(chromium), protocol=protocol) as client:
        assert "go back to the program" in chromium.text()
        assert client.call_tool("whoami").text == says(peer.url)
        assert user.another_process(peer.url, "whoami") == says(peer.url)
    assert user.another_process(peer.url, "whoami") == says(peer.url)
    assert events(peer, "registered", "asked", "exchanged") == [number + 1 for number in before]


def test_a_token_that_expires_is_replaced_in_time(mcp2_auth_command: List[str], chromium: Chromium, user: User) -> None:
    with HttpPeer([*mcp2_auth_command, "--access-seconds", "1"]) as peer:
        with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
            refused = events(peer, "refused")
            deadline = Deadline(PROCESS_SECONDS)
            while events(peer, "refreshed") < [3] and not deadline.expired:
                assert client.call_tool("whoami").text == says(peer.url)
        assert events(peer, "refreshed") >= [3]
        assert events(peer, "asked", "refused") == [1, *refused]
        assert peer.counts("alive")["refresh"] == 1  # each was used once


def test_a_server_in_its_sse_mode(mcp2_auth_command: List[str], chromium: Chromium, user: User) -> None:
    with HttpPeer([*mcp2_auth_command, "--sse"]) as peer, mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        assert client.call_tool("whoami").text == says(peer.url)
        control(peer, "expire")
        assert client.call_tool("whoami").text == says(peer.url)
        assert events(peer, "registered", "asked", "refreshed") == [1, 1, 1]


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
def test_a_token_that_is_refused_is_replaced(protocol: str, peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with mcpsync.connect(peer.url, auth=oauth(chromium), protocol=protocol) as client:
        before = events(peer, "refreshed", "asked")
        control(peer, "expire")
        assert client.call_tool("whoami").text == says(peer.url)
        control(peer, "expire")
        assert user.another_process(peer.url, "whoami") == says(peer.url)
        assert client.call_tool("whoami").text == says(peer.url)  # with what the other one got
        assert events(peer, "refreshed", "asked") == [before[0] + 2, before[1]]


def test_a_sign_in_that_was_revoked(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        control(peer, "revoke")
        with pytest.raises(mcpsync.NeedsLogin, match="invalid_grant"):
            client.call_tool("whoami")
        assert client.state == "needs_login"
        assert user.signed_in() == []
        before = events(peer, "registered", "asked")
        with pytest.raises(mcpsync.NeedsLogin):
            client.call_tool("whoami")
        assert events(peer, "registered", "asked") == before
        by_many_threads(client.login)
        assert client.call_tool("whoami").text == says(peer.url)
        assert events(peer, "registered", "asked") == [before[0], before[1] + 1]


def test_a_server_that_starts_anew_knows_nothing(mcp2_auth_command: List[str], chromium: Chromium, user: User) -> None:
    with HttpPeer(mcp2_auth_command) as peer, mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        assert client.call_tool("whoami").text == says(peer.url)
        peer.restart()
        with pytest.raises(mcpsync.NeedsLogin, match="invalid_client"):
            client.call_tool("whoami")
        client.login()
        assert client.call_tool("whoami").text == says(peer.url)
        assert events(peer, "registered", "asked") == [1, 1]


def test_signing_out(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        assert peer.counts("alive") == {"access": 1, "refresh": 1}
        assert client.logout()
        assert peer.counts("alive") == {"access": 0, "refresh": 0}
        assert user.signed_in() == []
        with pytest.raises(mcpsync.NeedsLogin):
            client.call_tool("whoami")
    with pytest.raises(mcpsync.NeedsLogin):
        mcpsync.connect(peer.url, auth=mcpsync.OAuth(interactive=False))


def test_a_person_who_says_no(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with pytest.raises(mcpsync.AuthError, match="access_denied"):
        mcpsync.connect(peer.url, auth=oauth(chromium, "Deny"))
    assert "go back to the program" in chromium.text()
    assert user.signed_in() == []
    before = events(peer, "registered")
    with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        assert client.call_tool("whoami").text == says(peer.url)
    assert events(peer, "registered") == before


def test_a_person_who_closes_the_page(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    seconds, closed = 1.5, threading.Event()
    way = Browser(opener=opener(chromium, chromium.close_page, closed.set))
    while not closed.is_set():
        seconds *= 2  # a slow machine needs longer to get as far as the page
        with pytest.raises(mcpsync.AuthError) as failed:
            mcpsync.connect(peer.url, auth=mcpsync.OAuth(way=way, timeout=seconds))
    assert "nobody came back" in str(failed.value)
    assert user.signed_in() == []
    with mcpsync.connect(peer.url, auth=oauth(chromium)) as client:
        assert client.call_tool("whoami").text == says(peer.url)


def test_the_command_line(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with user.terminal("login", peer.url, chromium=chromium) as login:
        signs_in(chromium)
        said, noted = login.communicate(timeout=PROCESS_SECONDS)
    assert login.returncode == 0, noted
    assert "signed in at" in said
    assert "To sign in, open this" in noted

    called = user.command("call", "whoami", "--url", peer.url)
    assert (called.returncode, called.stdout.strip()) == (0, says(peer.url)), called.stderr
    status = json.loads(user.command("auth", "status", "--json").stdout)
    assert [(row["resource"], row["state"]) for row in status["accounts"]] == [(peer.url, "signed in")]

    assert "was told" in user.command("logout", peer.url).stdout
    assert peer.counts("alive") == {"access": 0, "refresh": 0}
    assert user.command("call", "whoami", "--url", peer.url).returncode != 0


def test_the_command_line_and_a_person_who_says_no(peer: HttpPeer, chromium: Chromium, user: User) -> None:
    with user.terminal("login", peer.url, chromium=chromium) as login:
        signs_in(chromium, "Deny")
        _, noted = login.communicate(timeout=PROCESS_SECONDS)
    assert login.returncode != 0
    assert "access_denied" in noted
    assert "Traceback" not in noted


def test_a_browser_on_another_machine_and_a_host_that_waits(
    peer: HttpPeer, chromium: Chromium, user: User, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": {"url": peer.url, "trust_level": "trusted"}}}))
    changed = threading.Event()
    with mcpsync.Host.from_config(str(config), on_tools_changed=lambda revision: changed.set()) as host:
        assert [(row.name, row.state) for row in host.status()] == [("notes", "needs_login")]
        with user.terminal("login", "notes", "--config", str(config), "--paste") as login:
            assert login.stderr is not None
            shown = next(line.strip() for line in login.stderr if line.strip().startswith("http://"))
            chromium.show(shown)
            signs_in(chromium)
            _, noted = login.communicate(chromium.ends_at("http://127.0.0.1") + "\n", timeout=PROCESS_SECONDS)
        assert login.returncode == 0, noted
        assert changed.wait(PROCESS_SECONDS)
        assert host.call_tool("mcp__notes__whoami", {}).text == says(peer.url)
