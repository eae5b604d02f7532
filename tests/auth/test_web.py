"""The door to the network: where it leads, for how long, and what it never carries."""

from __future__ import annotations

import ipaddress
import threading
import time
import zlib

import pytest

from mcpsync.auth.addresses import is_public
from mcpsync.auth.urls import Url
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError
from tests.peers.http import HttpPeer, Proxy

LOCAL = "http://127.0.0.1:1/mcp"
PUBLIC = "https://mcp.example.org/mcp"


def answers(body=b'{"a": 1}', status=200, **headers):
    return lambda exchange: exchange.respond(status, body, **headers)


def names(**hosts):
    """A resolver that knows these."""

    def resolve(host):
        if host not in hosts:
            raise OSError("Name or service not known")
        return hosts[host]

    return resolve


def to(*addresses):
    return lambda host: addresses


def base(peer):
    return peer.url.rpartition("/")[0]


# -- what it sends and reads ---------------------------------------------------------------------------------------


def test_a_document_is_fetched_and_nothing_of_the_users_goes_along(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password SECRET\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with HttpPeer(answers()) as peer:
        answer = Web(LOCAL).get_json(base(peer) + "/x?y=1", Deadline(5))
        assert (answer.status, answer.data) == (200, {"a": 1})
        (request,) = peer.requests
    assert request.path == "/x?y=1"
    assert set(request.headers) == {"host", "accept", "accept-encoding", "user-agent"}
    assert request.headers["host"] == "127.0.0.1:%d" % peer.port


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b"", b"\xff", b"[" * 100_000, b'{"a": ["\\ud800"]}', b'{"\xed\xa0\x80": 1}']
)
def test_a_body_that_is_no_object_is_none(body):
    with HttpPeer(answers(body, 404)) as peer:
        answer = Web(LOCAL).get_json(peer.url, Deadline(5))
    assert (answer.status, answer.data) == (404, None)


def test_forms_and_objects_are_posted():
    with HttpPeer(answers()) as peer:
        web = Web(LOCAL)
        web.post_form(peer.url, {"a": "1 &", "b": "ü"}, {"Authorization": "Basic x"}, Deadline(5))
        web.post_json(peer.url, {"a": ["b"]}, Deadline(5))
        form, data = peer.requests
    assert form.body == b"a=1+%26&b=%C3%BC"
    assert form.headers["content-type"] == "application/x-www-form-urlencoded"
    assert form.headers["authorization"] == "Basic x"
    assert data.message == {"a": ["b"]}
    assert data.headers["content-type"] == "application/json"


def test_a_body_that_is_compressed_all_the_same_is_read():
    with HttpPeer(answers(compressed=True)) as peer:
        assert Web(LOCAL).get_json(peer.url, Deadline(5)).data == {"a": 1}


def test_a_body_that_is_not_compressed_as_it_says_is_a_clear_error():
    wrong = answers(b'{"a": 1}', Content_Encoding="gzip")
    with HttpPeer(wrong) as peer, pytest.raises(AuthError, match="cannot be decompressed"):
        Web(LOCAL).get_json(peer.url, Deadline(5))


def test_a_body_that_unpacks_to_too_much_is_none_and_costs_no_more_than_the_limit():
    bomb = zlib.compress(b'{"a": "' + b" " * 50_000_000 + b'"}')
    with HttpPeer(answers(bomb, Content_Encoding="deflate")) as peer:
        assert Web(LOCAL).get_json(peer.url, Deadline(20)).data is None


def test_an_answer_shows_no_secret():
    with HttpPeer(answers(b'{"access_token": "SECRET"}')) as peer:
        assert "SECRET" not in repr(Web(LOCAL).get_json(peer.url, Deadline(5)))


# -- bounds ---------------------------------------------------------------------------------------------------------


def test_a_body_that_does_not_end_is_given_up():
    def endless(exchange):
        exchange.start(content_type="application/json")
        while not exchange.peer.closing.is_set():
            exchange.write(b" " * 65536)

    with HttpPeer(endless) as peer, pytest.raises(AuthError, match="more than 512 KB"):
        Web(LOCAL).get_json(peer.url, Deadline(10))


@pytest.mark.parametrize("part", ["nothing", "head", "body"])
def test_a_slow_answer_ends_by_the_deadline(part):
    def slow(exchange):
        if part == "head":
            exchange.dribble(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000)
        if part == "body":
            exchange.start(framing="1000")
            exchange.dribble(b" " * 1000)
        exchange.wait_closed()

    with HttpPeer(slow) as peer:
        began = time.monotonic()
        with pytest.raises(AuthError, match="did not answer in time"):
            Web(LOCAL).get_json(peer.url, Deadline(0.5))
        assert time.monotonic() - began < 5


def test_a_handshake_that_does_not_end_ends_by_the_deadline(authority):
    with HttpPeer(None) as peer, pytest.raises(AuthError):
        Web(LOCAL).get_json("https://127.0.0.1:%d/" % peer.port, Deadline(0.3))


def test_a_resolver_that_does_not_answer_ends_by_the_deadline():
    released = threading.Event()

    def stuck(host):
        released.wait(20)
        return []

    try:
        with pytest.raises(AuthError, match="could not be found in time"):
            Web(PUBLIC, resolver=stuck).get_json("https://as.example.org/", Deadline(0.2))
    finally:
        released.set()


def test_a_connection_that_is_refused_or_cut_is_a_clear_error():
    with HttpPeer(lambda exchange: exchange.reset()) as peer:
        with pytest.raises(AuthError, match=r"127\.0\.0\.1"):
            Web(LOCAL).get_json(peer.url, Deadline(5))
        url = peer.url
    with pytest.raises(AuthError, match="cannot be reached"):
        Web(LOCAL).get_json(url, Deadline(5))


def test_a_name_without_an_address_is_a_clear_error():
    with pytest.raises(AuthError, match=r"nowhere\.example has no address: Name or service not known"):
        Web(PUBLIC, resolver=names()).get_json("https://nowhere.example/", Deadline(5))


def test_the_next_address_is_tried(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer:
        web = Web(LOCAL, verify=authority.ca, allow_hosts=["mcp.example.org"], resolver=to("127.0.0.2", "127.0.0.1"))
        assert web.get_json("https://mcp.example.org:%d/" % peer.port, Deadline(5)).data == {"a": 1}


# -- redirects ------------------------------------------------------------------------------------------------------


def test_a_document_may_move_on_its_origin():
    def moved(exchange):
        if exchange.request.path == "/new":
            exchange.respond(200, {"a": 1})
        else:
            exchange.respond(301, Location="/new")

    with HttpPeer(moved) as peer:
        assert Web(LOCAL).get_json(peer.url, Deadline(5)).data == {"a": 1}


def test_a_document_may_not_move_elsewhere():
    with HttpPeer(answers()) as other, HttpPeer(answers(status=302, Location=other.url)) as peer:
        with pytest.raises(AuthError, match="redirects to http://127.0.0.1:%d, which is not followed" % other.port):
            Web(LOCAL).get_json(peer.url, Deadline(5))
        assert not other.requests


def test_redirects_in_a_circle_end():
    with HttpPeer(answers(status=302, Location="/mcp")) as peer:
        with pytest.raises(AuthError, match="too often"):
            Web(LOCAL).get_json(peer.url, Deadline(5))
        assert len(peer.requests) == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_what_is_posted_is_never_redirected(status):
    with HttpPeer(answers(status=status, Location="/elsewhere")) as peer:
        with pytest.raises(AuthError, match="not followed with secrets") as caught:
            Web(LOCAL).post_form(peer.url, {"code": "SECRET"}, None, Deadline(5))
        assert len(peer.requests) == 1
    assert "SECRET" not in str(caught.value)


# -- where it may go ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("2002:0a00:0001::1", False),
        ("2002:5db8:d822::1", True),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::5db8:d822", True),
        ("64:ff9b:1::5db8:d822", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("::127.0.0.1", False),
        ("::ffff:0:127.0.0.1", False),
        ("fec0::1", False),
        ("5f00::1", False),
    ],
)
def test_addresses_of_the_open_internet(address, public):
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:{port}/",
        "https://localhost:{port}/",
        "http://127.0.0.1:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://as.example.org:{port}/",
    ],
)
def test_a_server_on_the_internet_cannot_lead_to_this_machine(url, authority):
    with HttpPeer(answers()) as peer:
        web = Web(PUBLIC, verify=authority.ca, resolver=to("127.0.0.1"))
        with pytest.raises(AuthError, match="private or local address"):
            web.get_json(url.format(port=peer.port), Deadline(5))
        assert peer.connections == 0


def test_a_name_that_changes_its_meaning_is_asked_once_and_connected_to_as_it_was():
    meanings = iter([["127.0.0.1"], ["127.0.0.2"]])
    with HttpPeer(answers()) as peer:
        web = Web("http://localhost/mcp", resolver=lambda host: next(meanings))
        assert web.get_json("http://localhost:%d/" % peer.port, Deadline(5)).status == 200
    assert next(meanings) == ["127.0.0.2"]


def test_of_several_addresses_only_public_ones_are_connected_to():
    with HttpPeer(answers()) as peer:
        web = Web(PUBLIC, resolver=to("127.0.0.1", "2001:4860::1"))
        with pytest.raises(AuthError):
            web.get_json("https://as.example.org:%d/" % peer.port, Deadline(0.5))
        assert peer.connections == 0


def test_an_allowed_host_may_be_anywhere(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer:
        for allowed in ("mcp.example.org", "MCP.example.org:%d" % peer.port):
            web = Web(PUBLIC, allow_hosts=[allowed], verify=authority.ca, resolver=to("127.0.0.1"))
            assert web.get_json("https://mcp.example.org:%d/" % peer.port, Deadline(5)).status == 200


def test_where_the_server_itself_is_may_be_asked(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer:
        web = Web(PUBLIC, verify=authority.ca, resolver=to("127.0.0.1"))
        assert web.get_json("https://mcp.example.org:%d/" % peer.port, Deadline(5)).status == 200


def test_plain_http_goes_to_this_machine_only():
    web = Web("https://mcp.example.org", allow_hosts=["as.example.org"], resolver=to("93.184.216.34"))
    with pytest.raises(AuthError, match="not https"):
        web.get_json("http://as.example.org/", Deadline(5))


def test_a_localhost_that_is_another_machine_is_not_asked():
    with pytest.raises(AuthError, match="that name is not this machine"):
        Web("http://localhost/", resolver=to("10.0.0.1")).get_json("http://localhost:1/", Deadline(5))


# -- TLS and proxies ------------------------------------------------------------------------------------------------


def test_a_certificate_of_nobody_is_refused_unless_that_is_asked_for(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer:
        with pytest.raises(AuthError, match="certificate"):
            Web(LOCAL).get_json(peer.url, Deadline(5))
        assert Web(LOCAL, verify=authority.ca).get_json(peer.url, Deadline(5)).status == 200


def test_a_certificate_of_another_name_is_refused(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer:
        web = Web(LOCAL, verify=authority.ca, allow_hosts=["as.example.org"], resolver=to("127.0.0.1"))
        with pytest.raises(AuthError, match=r"as\.example\.org"):
            web.get_json("https://as.example.org:%d/" % peer.port, Deadline(5))
        assert not peer.requests


def test_verification_is_off_where_the_user_says_so(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer:
        assert Web(LOCAL, verify=False).get_json(peer.url, Deadline(5)).status == 200


def test_the_bundle_of_the_environment_is_used(authority, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.ca)
    with HttpPeer(answers(), tls=authority.server()) as peer:
        assert Web(LOCAL).get_json(peer.url, Deadline(5)).status == 200


@pytest.mark.parametrize("of_environment", [True, False])
def test_a_proxy_is_used_and_resolves(authority, monkeypatch, of_environment):
    with HttpPeer(answers(), tls=authority.server()) as peer, Proxy(("127.0.0.1", peer.port)) as proxy:
        if of_environment:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        proxies = None if of_environment else {"https": proxy.url}
        web = Web("https://mcp.example.net", verify=authority.ca, proxies=proxies, resolver=names())
        assert web.get_json("https://mcp.example.org/x", Deadline(5)).data == {"a": 1}
        assert proxy.asked[0].startswith("CONNECT mcp.example.org:443 ")
        assert peer.requests[0].path == "/x"


def test_a_proxy_is_not_asked_for_private_addresses(authority):
    with Proxy(("127.0.0.1", 1)) as proxy:
        web = Web(PUBLIC, proxies={"https": proxy.url}, resolver=names())
        with pytest.raises(AuthError, match="private or local address"):
            web.get_json("https://169.254.169.254/latest", Deadline(5))
        assert not proxy.asked


def test_a_proxy_without_a_scheme_is_one_that_speaks_http(authority):
    with HttpPeer(answers(), tls=authority.server()) as peer, Proxy(("127.0.0.1", peer.port)) as proxy:
        bare = proxy.url.partition("://")[2]
        web = Web(PUBLIC, verify=authority.ca, proxies={"https": bare}, resolver=names())
        assert web.get_json("https://mcp.example.org/x", Deadline(5)).data == {"a": 1}


@pytest.mark.parametrize(
    "proxy", ["http://me:SECRET@[bad", "http://me:SECRET@127.0.0.1:x", "ftp://me:SECRET@h", "x://me:SECRET@h"]
)
def test_a_proxy_that_cannot_be_used_is_a_clear_error(proxy):
    with pytest.raises(AuthError, match=r"the proxy for https://as.example\.org cannot be used") as caught:
        Web(PUBLIC, proxies={"https": proxy}).get_json("https://as.example.org/", Deadline(5))
    assert "SECRET" not in str(caught.value)


def test_a_silent_proxy_ends_by_the_deadline():
    with Proxy(("127.0.0.1", 1), silent=True) as proxy:
        web = Web(PUBLIC, proxies={"https": proxy.url})
        with pytest.raises(AuthError):
            web.get_json("https://as.example.org/", Deadline(0.3))


# -- URLs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "as.example.org",
        "ftp://as.example.org",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://as.example.org:99999",
        "https://user@as.example.org",
        "https://as.example.org@evil.example",
        "https://as.example.org/ x",
        "https://as.example.org/\nHost: evil",
        "https://as.example.org\\@evil.example",
        "https://as.example.org/`id`",
        "https://\u0430s.example.org",
        "https://[::1",
    ],
)
def test_what_is_no_url_to_go_to(text):
    with pytest.raises(AuthError, match="the issuer"):
        Url.parse(text, "the issuer")


def test_urls_are_compared_by_origin_and_shown_without_their_query():
    url = Url.parse("HTTPS://AS.Example.org:443/a?code=SECRET#x", "it")
    assert url.origin == "https://as.example.org"
    assert url.shown == "https://as.example.org/a"
    assert str(url) == "https://as.example.org/a?code=SECRET"
    assert Url.parse("https://[::1]:8443", "it").authority == "[::1]:8443"
