"""The ways in which a person signs in, and how each ends when they do not."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from mcpsync.auth.authorization_code import AuthorizationRequest
from mcpsync.auth.browser import Browser, OwnWay, Paste, ask_on_terminal, open_browser
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError
from tests.peers.authorization import follow

SOON = 10
REQUEST = AuthorizationRequest("https://as.example/authorize?x=1", "right", "verifier")


def come_back(visit, code="c", state="right"):
    threading.Thread(target=follow, args=("%s?code=%s&state=%s" % (visit.redirect_uri, code, state),)).start()
    return True


# -- a browser here -------------------------------------------------------------------------------------------------


def test_a_browser_is_opened_once_the_callback_listens():
    opened = []

    def opener(url):
        opened.append(url)
        return come_back(visit)

    with Browser(opener=opener).begin([]) as visit:
        assert visit.answer(REQUEST, Deadline(SOON)) == {"code": "c", "state": "right"}
    assert opened == [REQUEST.url]


def test_a_url_that_is_shown_is_enough():
    with Browser(opener=lambda url: False, announce=lambda url: come_back(visit)).begin([]) as visit:
        assert visit.answer(REQUEST, Deadline(SOON))["code"] == "c"


def test_no_browser_and_nobody_to_show_the_url_to():
    with Browser(opener=lambda url: False).begin([]) as visit, pytest.raises(AuthError, match="way='paste'"):
        visit.answer(REQUEST, Deadline(SOON))


def test_the_port_that_the_client_is_registered_with_is_taken_again():
    with Browser().begin([]) as first:
        pass
    with Browser().begin(["https://elsewhere.example", first.redirect_uri]) as second:
        assert second.redirect_uri == first.redirect_uri
        with Browser().begin([first.redirect_uri]) as third:
            assert third.redirect_uri != first.redirect_uri


def test_a_fixed_port_that_is_taken():
    with Browser().begin([]) as first:
        port = int(first.redirect_uri.split(":")[2].split("/")[0])
        with pytest.raises(AuthError, match="port %d" % port), Browser(port=port).begin([]):
            pass


def test_without_a_screen_no_browser_is_tried(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert open_browser("https://as.example") is False


def test_the_persons_browser_is_started(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    seen = tmp_path / "seen"
    script = tmp_path / "browser"
    script.write_text('#!/bin/sh\nprintf %%s "$1" > %s\n' % seen)
    script.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(script))
    monkeypatch.setattr("webbrowser._tryorder", None)
    assert open_browser("https://as.example/?a=1&b=2") is True
    assert seen.read_text() == "https://as.example/?a=1&b=2"


# -- a browser elsewhere --------------------------------------------------------------------------------------------


def test_what_is_pasted_is_the_answer_once_it_is_the_right_one():
    tries = iter(["", "nonsense", "\n http://127.0.0.1:1/callback?code=c&state=right \n"])
    with Paste(ask=lambda url: next(tries)).begin([]) as visit:
        assert visit.answer(REQUEST, Deadline(SOON))["code"] == "c"


@pytest.mark.parametrize("pasted", ["code", "http://127.0.0.1/?code=SECRET&state=wrong", "https://as.example"])
def test_something_else_is_pasted(pasted):
    asked = []
    way = Paste(ask=lambda url: asked.append(url) or pasted)
    with way.begin([]) as visit, pytest.raises(AuthError, match="what was pasted is not the address") as caught:
        visit.answer(REQUEST, Deadline(SOON))
    assert asked == [REQUEST.url] * 3
    assert "SECRET" not in str(caught.value)


def test_nothing_is_pasted():
    released = threading.Event()
    with Paste(ask=lambda url: str(released.wait(SOON))).begin([]) as visit:
        with pytest.raises(AuthError, match="nothing was pasted in time"):
            visit.answer(REQUEST, Deadline(0.1))
        released.set()


def test_errors_of_whoever_asks_come_through():
    def ask(url):
        raise KeyError("mine")

    with Paste(ask=ask).begin([]) as visit, pytest.raises(KeyError):
        visit.answer(REQUEST, Deadline(SOON))


def test_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("http://127.0.0.1:1/callback?code=c&state=right\n"))
    with Paste().begin([]) as visit:
        assert visit.answer(REQUEST, Deadline(SOON))["code"] == "c"
    shown = capsys.readouterr()
    assert REQUEST.url in shown.err
    assert shown.out == ""


def test_a_terminal_where_nobody_is(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.setattr("sys.stderr", None)
    with Paste(ask=ask_on_terminal).begin([]) as visit, pytest.raises(AuthError, match="nobody to paste"):
        visit.answer(REQUEST, Deadline(SOON))


def test_the_address_to_paste_is_one_that_the_client_is_registered_with():
    with Paste().begin(["http://127.0.0.1:7777/callback"]) as visit:
        assert visit.redirect_uri == "http://127.0.0.1:7777/callback"
    with Paste(port=8888).begin(["http://127.0.0.1:7777/callback"]) as visit:
        assert visit.redirect_uri == "http://127.0.0.1:8888/callback"
    with Paste(redirect_uri="https://me.example/done").begin([]) as visit:
        assert visit.redirect_uri == "https://me.example/done"
    with Paste().begin(["http://[::1"]) as visit:
        assert visit.redirect_uri.startswith("http://127.0.0.1:")


# -- whatever the host has ------------------------------------------------------------------------------------------


def test_a_function_of_the_hosts_runs_on_the_thread_that_signs_in():
    threads = []

    def function(url):
        threads.append(threading.current_thread())
        return "myapp://callback?code=c&state=right"

    with OwnWay(function, redirect_uri="myapp://callback").begin([]) as visit:
        assert visit.redirect_uri == "myapp://callback"
        assert visit.answer(REQUEST, Deadline(SOON))["code"] == "c"
    assert threads == [threading.current_thread()]


def test_a_function_that_gives_up():
    with OwnWay(lambda url: None).begin([]) as visit, pytest.raises(AuthError, match="given up"):
        visit.answer(REQUEST, Deadline(SOON))
