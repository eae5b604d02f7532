"""``mcpsync login``, ``logout`` and ``auth status``, as processes, at a real authorization server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest

from mcpsync.auth.store_keys import new_key
from tests.cli.command import MCPSYNC, document, environment, mcpsync
from tests.peers.authorization import AuthorizationServer, ProtectedServer, browse
from tests.peers.http_servers import Modern
from tests.peers.machines import BoundServer, MachineServer, new_pem, public_of

SECONDS = 30
BROWSER = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(sys.argv[1], timeout=20).read()
"""

Servers = Tuple[AuthorizationServer, ProtectedServer]


@pytest.fixture
def servers() -> Iterator[Servers]:
    with AuthorizationServer() as server, ProtectedServer(server, behaviour=Modern(), challenge_scope="a") as resource:
        yield server, resource


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER)
    monkeypatch.setenv("BROWSER", "%s %s %%s" % (sys.executable, browser))
    monkeypatch.setenv("MCPSYNC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MCPSYNC_PROFILE", raising=False)
    return tmp_path / "home"


def config(path: Path, url: str, **more: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": {"web": {"type": "http", "url": url, **more}}}))
    return str(path)


def test_a_sign_in_by_browser_its_use_and_its_end(servers: Servers) -> None:
    server, resource = servers
    refused = mcpsync("tools", "--url", resource.url)
    assert refused.returncode == 3
    assert "sign in with login() or `mcpsync login`" in refused.stderr
    done = mcpsync("login", resource.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("127.0.0.1: signed in at %s\n" % server.issuer)
    assert server.issuer + "/authorize?" in done.stderr
    assert mcpsync("call", "work", "--url", resource.url).stdout == "done\n"

    (account,) = document("auth", "status")["accounts"]
    assert (account["account"], account["resource"], account["state"]) == ("127.0.0.1", resource.url, "signed in")
    assert (account["scopes"], account["refreshes"]) == (["a"], True)
    shown = mcpsync("auth", "status").stdout
    assert shown.startswith("1 sign-in in ")
    assert not [secret for secret in server.secrets if secret in shown + done.stdout + done.stderr]

    gone: Dict[str, Any] = document("logout", resource.url)
    assert gone == {"server": "127.0.0.1", "was_signed_in": True, "revoked": True}
    assert server.access == server.refresh == {}
    assert document("auth", "status")["accounts"] == []
    assert mcpsync("logout", resource.url).stdout == "127.0.0.1: nobody was signed in\n"
    assert mcpsync("tools", "--url", resource.url).returncode == 3


def test_a_server_of_a_config_file(servers: Servers, home: Path, tmp_path: Path) -> None:
    server, resource = servers
    file = config(tmp_path / "other.json", resource.url, oauth={"scopes": "a b"})
    assert document("login", "web", "--config", file)["account"] == "web"
    assert server.authorizations[0]["scope"] == "a b"
    assert mcpsync("call", "work", "--config", file).stdout == "done\n"
    missing = mcpsync("logout", "web")
    assert missing.returncode == 2
    assert "--config FILE" in missing.stderr
    config(home / "mcp.json", resource.url)
    assert document("logout", "web")["revoked"] is True


def test_a_browser_on_another_machine(servers: Servers) -> None:
    _, resource = servers
    command = [*MCPSYNC, "login", "--paste", "--json", resource.url]
    pipes: Dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), encoding="utf-8", **pipes) as process:
        assert process.stderr is not None
        url = next(line.strip() for line in process.stderr if line.strip().startswith("http"))
        out, err = process.communicate(browse(url) + "\n", timeout=SECONDS)
    assert process.returncode == 0, err
    assert json.loads(out)["signed_in"] is True
    assert mcpsync("call", "work", "--url", resource.url).stdout == "done\n"


def test_a_person_who_never_comes_back(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    _, resource = servers
    monkeypatch.setenv("BROWSER", "true")
    done = mcpsync("login", "--timeout", "0.3", resource.url)
    assert done.returncode == 3
    assert "in time" in done.stderr
    assert document("auth", "status")["accounts"][0]["state"] == "signed out"


def test_options_for_a_client_that_was_registered_beforehand() -> None:
    clients: Dict[str, Any] = {"known": None}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ("--client-id", "known", "--scope", "x y", "--callback-port", port)
    with AuthorizationServer(registration=False, clients=clients) as server, ProtectedServer(server) as resource:
        refused = mcpsync("login", resource.url)
        assert refused.returncode == 3
        assert "client_id" in refused.stderr
        done = mcpsync("login", resource.url, *options)
        assert done.returncode == 0, done.stderr
        asked = server.authorizations[-1]
    assert (asked["client_id"], asked["scope"]) == ("known", "x y")
    assert asked["redirect_uri"] == "http://127.0.0.1:%s/callback" % port


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("login",), "SERVER is missing"),
        (("login", "http://x.example/mcp", "--config", "x"), "of no use"),
        (("login", "web"), "--config FILE"),
        (("login", "web", "--", "server"), "over HTTP"),
        (("login", "http://x.example/mcp", "--callback-port", "0"), "number of a port"),
        (("logout", "http://x.example/mcp", "--paste"), "no option --paste"),
        (("auth", "list"), "mcpsync auth status"),
        (("auth", "status", "--", "server"), "take away"),
    ],
)
def test_wrong_arguments(arguments: Tuple[str, ...], text: str) -> None:
    done = mcpsync(*arguments)
    assert done.returncode == 2
    assert text in done.stderr


def test_a_program_that_nobody_signs_in_for(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSYNC_STORE_KEY", new_key())
    pem = new_pem()
    (tmp_path / "key.pem").write_text(pem)
    said = {"grant": "client_credentials", "clientId": "agent", "privateKeyFile": str(tmp_path / "key.pem")}
    keys = {"agent": (public_of(pem), "ES256")}
    with (
        MachineServer(keys=keys, bound=True, auth_methods=["private_key_jwt"]) as server,
        BoundServer(server, behaviour=Modern(), challenge_scope="a") as resource,
    ):
        file = config(tmp_path / "other.json", resource.url, oauth={**said, "dpop": True})
        for _ in range(2):
            done = mcpsync("call", "work", "--config", file)
            assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        assert len(server.token_requests) == 1
        (account,) = document("auth", "status")["accounts"]
        assert account["state"].startswith("signed in for ")
        assert {name: account[name] for name in ("account", "grant", "issuer", "scopes", "bound", "refreshes")} == {
            "account": "web",
            "grant": "client_credentials",
            "issuer": server.issuer,
            "scopes": ["a"],
            "bound": True,
            "refreshes": False,
        }
        assert "client_credentials, bound to a key" in mcpsync("auth", "status").stdout
        assert [each.name for each in home.iterdir()] == ["credentials.encrypted"]
        monkeypatch.setenv("MCPSYNC_STORE_KEY", new_key())
        for words in (("call", "work", "--config", file), ("auth", "status")):
            refused = mcpsync(*words)
            assert refused.returncode != 0
            assert "locked with another one than a key that was given; nothing was changed" in refused.stderr
            assert "Traceback" not in refused.stderr
