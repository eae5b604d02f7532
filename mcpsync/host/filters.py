"""Which of a server's tools are used: include, then exclude, by the names that the server gives them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Callable, Iterable, Tuple, Union

__all__ = ["Rule", "Rules", "ToolFilter"]

#: A name, a glob (``*``, ``?``, ``[...]``; case counts), or a function that takes a name and returns a truth value.
Rule = Union[str, Callable[[str], object]]
#: One rule or several.
Rules = Union[Rule, Iterable[Rule]]


class ToolFilter:
    """Include, then exclude: what both name is excluded.

    :param include: the tools to use; none given means all
    :param exclude: of these, the ones not to use
    :raises TypeError: a rule is neither a string nor a function
    """

    def __init__(self, include: Rules = (), exclude: Rules = ()) -> None:
        self._include = _rules(include, "include")
        self._exclude = _rules(exclude, "exclude")

    def allows(self, name: str) -> bool:
        """Whether a tool of this original name is used; what a rule's function raises comes through."""
        if self._include and not any(_matches(rule, name) for rule in self._include):
            return False
        return not any(_matches(rule, name) for rule in self._exclude)


def _rules(rules: Rules, what: str) -> Tuple[Rule, ...]:
    several: Tuple[Rule, ...] = (rules,) if isinstance(rules, str) or callable(rules) else tuple(rules)
    for rule in several:
        if not isinstance(rule, str) and not callable(rule):
            raise TypeError("%s takes names, globs and functions, and got a %s" % (what, type(rule).__name__))
    return several


def _matches(rule: Rule, name: str) -> bool:
    if isinstance(rule, str):
        return rule == name or fnmatchcase(name, rule)  # a tool may be called "read[0]"
    return bool(rule(name))
