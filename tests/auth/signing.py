"""A sign-in in a line or two, for the tests of its parts."""

from __future__ import annotations

from mcpsync.auth.authorization_code import choose_scopes
from mcpsync.auth.browser import OwnWay
from mcpsync.auth.challenge import bearer_challenge
from mcpsync.auth.discovery import discover
from mcpsync.auth.identity import IdentityOptions
from mcpsync.auth.sign_in import sign_in
from mcpsync.auth.web import Web
from mcpsync.deadline import Deadline
from tests.peers.authorization import browse

SOON = 20


def find(resource, web=None, seconds=SOON):
    web = web or Web(resource.url)
    return discover(resource.url, bearer_challenge(resource.challenge), web, Deadline(seconds))


def sign_in_at(resource, way=None, saved=None, web=None, scopes=None, options=None, seconds=SOON, **more):
    """The credentials of a person who says yes, unless another way is given."""
    web = web or Web(resource.url)
    found = find(resource, web, seconds)
    return sign_in(
        found,
        options or IdentityOptions(),
        saved,
        choose_scopes(found) if scopes is None else scopes,
        way or OwnWay(browse),
        web,
        Deadline(seconds),
        account="test",
        **more,
    )
