"""The fields of one server's entry, by type: read, expanded, and what is wrong with them reported."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, TypeVar

from mcpsync.config.diagnose import Report, Where, kind, nearest
from mcpsync.config.dialects import MISNOMERS, Dialect
from mcpsync.config.expand import Values, bare_variable, expand, taken_literally
from mcpsync.errors import ConfigError

__all__ = ["Entry"]

_T = TypeVar("_T")

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HOUR = 3600.0
#: Fields in which an empty string says the same as no entry.
_MAY_BE_EMPTY = ("command", "url", "http_url", "cwd", "transport", "type", "auth", "socket", "env_file")


class Entry:
    """The fields of one server.

    Each reader returns a harmless value for a field that is absent or wrong, after reporting it, so that all
    that is wrong with a server is said at once.

    :ivar enabled: it is to be started, so variables are looked up, and what is wrong is an error
    :ivar error: the first thing that keeps it from being started
    """

    def __init__(self, name: str, where: Where, dialect: Dialect, values: Values, report: Report) -> None:
        self.enabled = True
        self.error: Optional[ConfigError] = None
        self.name = name
        self.dialect = dialect
        self.values = values
        self._where = where
        self._report = report
        self._fields: Dict[str, Tuple[Where, Any]] = {}
        self.unknown: Dict[str, Optional[str]] = {}

    # -- what is there

    def take(self, body: Mapping[Any, Any]) -> None:
        """Sort the keys into fields, those that are read over, and unknown ones."""
        for key, value in body.items():
            if not isinstance(key, str):
                self.wrong((str(key),), "a key must be a string: put it in quotes")
                continue
            inner = self.dialect.nested.get(key)
            if inner is not None and isinstance(value, Mapping):
                for each, nested in value.items():
                    self._take_field(inner, (key, str(each)), each, nested)
            else:
                self._take_field(self.dialect.keys, (key,), key, value)

    def _take_field(self, keys: Mapping[str, str], inside: Where, key: str, value: Any) -> None:
        field = keys.get(key)
        if field is None:
            self._take_other(inside, key)
        elif field in self._fields:
            other = ".".join(str(step) for step in self._fields[field][0])
            self.wrong(inside, "says the same as %r: keep one of the two" % other)
        elif value is not None and not (value == "" and field in _MAY_BE_EMPTY):
            self._fields[field] = (inside, value)

    def _take_other(self, inside: Where, key: str) -> None:
        dialect = self.dialect
        if key in dialect.silent or key.startswith(("_", "//", "x-")):
            return
        if key in dialect.remarks:
            self.remark("note", inside, dialect.remarks[key])
        elif key in dialect.unused:
            self.remark("warning", inside, "is known, but not used by this version")
        else:
            self.unknown[key] = self._meant(key)
            self.remark("warning", inside, "unknown key", self.unknown[key])

    def _meant(self, key: str) -> Optional[str]:
        """The known key that is likely meant, in the spelling of this layout."""
        near = nearest(key, self.dialect.known(), MISNOMERS)
        if near is None or near in self.dialect.keys:
            return near
        return next((known for known, field in self.dialect.keys.items() if field == near), None)

    def __contains__(self, field: object) -> bool:
        return field in self._fields

    def given(self, *fields: str) -> bool:
        """Whether the entry has one of these fields."""
        return not self._fields.keys().isdisjoint(fields)

    def raw(self, field: str) -> Any:
        """The value as it stands in the file; None where it does not."""
        return self._fields[field][1] if field in self._fields else None

    def where(self, field: str) -> Where:
        """Where the field stands in the entry."""
        return self._fields[field][0]

    def signing(self) -> Dict[str, Tuple[str, Any]]:
        """The fields of signing in, each with its key."""
        fields = ((field, self._fields.get(field)) for field in ("auth", "oauth"))
        return {field: (str(found[0][0]), found[1]) for field, found in fields if found is not None}

    # -- remarks

    def remark(self, severity: str, inside: Where, message: str, near: Optional[str] = None) -> ConfigError:
        """Report it."""
        found = self._report.add(severity, (*self._where, *inside), message, nearest=near, server=self.name)
        return found.as_error()

    def wrong(self, inside: Where, message: str, near: Optional[str] = None) -> None:
        """Report what keeps the server from starting: the first such error is the one that it keeps."""
        error = self.remark("error" if self.enabled else "warning", inside, message, near)
        if self.error is None:
            self.error = error

    # -- readers

    def typed(self, field: str, form: str, convert: Callable[[Any], Optional[_T]]) -> Optional[_T]:
        """The value converted, None where there is none or where it does not have the form."""
        if field not in self._fields:
            return None
        inside, value = self._fields[field]
        converted = convert(value)
        if converted is None:
            self.wrong(inside, "must be %s, and is %s" % (form, kind(value)))
        return converted

    def flag(self, field: str, default: bool) -> bool:
        """A boolean; in words too, since YAML 1.1 has them."""

        def convert(value: Any) -> Optional[bool]:
            return _WORDS.get(value.lower()) if isinstance(value, str) else value if isinstance(value, bool) else None

        found = self.typed(field, "true or false", convert)
        return default if found is None else found

    def seconds(
        self, field: str, default: Optional[float], limit: Optional[float] = None, *, zero: bool = False
    ) -> Optional[float]:
        """A length of time in seconds, above 0 (or from it, if ``zero``) and at most ``limit``."""
        in_milliseconds = field in self._fields and self._fields[field][0][-1] in self.dialect.milliseconds
        unit = "milliseconds" if in_milliseconds else "seconds"

        def convert(value: Any) -> Optional[float]:
            return None if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)

        try:
            found = self.typed(field, "a number of %s, as %d" % (unit, 30000 if in_milliseconds else 30), convert)
        except OverflowError:  # an integer beyond what a float can be
            found = math.inf
        if found is None:
            return default
        inside = self._fields[field][0]
        seconds = found / 1000 if in_milliseconds else found
        if not (0 < found < math.inf or (zero and found == 0)):
            self.wrong(inside, "must be a number of %s %s 0" % (unit, "from" if zero else "above"))
        elif limit is not None and seconds > limit:
            self.wrong(inside, "must be at most %g seconds" % limit)
        elif seconds < self.dialect.least_timeout:
            self.remark("warning", inside, "is ignored: less than %g ms" % (self.dialect.least_timeout * 1000))
            return default
        elif seconds > _HOUR and not zero:
            self.remark("warning", inside, "is in %s: %g s is more than an hour" % (unit, seconds))
        return seconds

    def choice(self, field: str, known: Tuple[str, ...], default: Optional[str]) -> Optional[str]:
        """One of a few words."""
        form = "one of %s" % ", ".join(known)
        found = self.typed(field, form, lambda value: value if isinstance(value, str) else None)
        if found is None or found in known:
            return found or default
        self.wrong(self._fields[field][0], "must be %s" % form)
        return default

    def text(self, field: str) -> str:
        """A string, expanded."""
        found = self.typed(field, "a string", lambda value: value if isinstance(value, str) else None)
        return self._expanded(field, self._fields[field][0], found) if found else ""

    def texts(self, field: str) -> List[str]:
        """A list of strings, expanded."""
        form = 'a list of strings, as ["one", "two"]'
        found = self.typed(field, form, lambda value: value if isinstance(value, (list, tuple)) else None)
        if found is None:
            return []
        inside = self._fields[field][0]
        return [self.scalar(field, (*inside, index), value) for index, value in enumerate(found)]

    def text_map(self, field: str, problem: Callable[[str, str], str], *, nulls: bool = False) -> Dict[str, str]:
        """A map of strings to strings, the values expanded and then checked; one without a value is left out."""
        form = 'a map, as {"NAME": "value"}'
        found = self.typed(field, form, lambda value: value if isinstance(value, Mapping) else None)
        texts: Dict[str, str] = {}
        for name, value in (found or {}).items():
            if nulls and value is None:
                continue
            inside = (*self._fields[field][0], str(name))
            texts[str(name)] = text = self.scalar(field, inside, value)
            wrong = problem(str(name), text)
            if wrong:
                self.wrong(inside, wrong)
        return texts

    def variable(self, inside: Where, name: str) -> str:
        """The value of a variable that the entry names."""
        if not self.enabled:
            return ""
        found = self.values.variable(name)
        if found is None:
            self.wrong(inside, "server %r needs a variable that is not set: %s" % (self.name, name))
        return found or ""

    def scalar(self, field: str, inside: Where, value: Any) -> str:
        """A string, or what has exactly one way to be written as one."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, str):
            return self._expanded(field, inside, value)
        self.wrong(inside, "must be a string, and is %s: put it in quotes" % kind(value))
        return ""

    def _expanded(self, field: str, inside: Where, text: str) -> str:
        if not self.enabled:
            return text
        dialect = self.dialect
        if field not in dialect.expanded:
            return text
        forms = dialect.forms | {"bare"} if field in dialect.bare_variables else dialect.forms
        expanded = expand(text, self.values, forms)
        if expanded.missing:
            self._missing(inside, expanded.missing, "default" in forms)
        if "\0" in expanded.text:
            self.wrong(inside, "contains a NUL character")
        for form in expanded.foreign:
            self.wrong(inside, "${%s} can only be filled by the program that the file was written for" % form)
        for problem in expanded.problems:
            self.wrong(inside, problem)
        if "braced" in forms:
            unexpanded = "" if "bare" in forms else bare_variable(text, self.values.environ)
            if unexpanded:
                self.remark(
                    "note", inside, "$%s is taken as it stands here: a variable is ${%s}" % (unexpanded, unexpanded)
                )
        else:
            literal = taken_literally(expanded.text) if expanded.text == text else ""
            if literal:
                self.remark("note", inside, "%s is taken as it stands: this layout has no such variables" % literal)
        return expanded.text

    def _missing(self, inside: Where, names: Tuple[str, ...], has_defaults: bool) -> None:
        listed = ", ".join(names)
        if self.values.on_missing == "empty":
            self.remark("warning", inside, "has a variable that is not set, and so is empty: %s" % listed)
        elif self.values.on_missing == "keep":
            self.remark("warning", inside, "has a variable that is not set, and stays as it is: %s" % listed)
        else:
            remedy = "set it, or give a default as ${%s:-...}" % names[0] if has_defaults else "set it"
            self.wrong(inside, "server %r needs a variable that is not set: %s; %s" % (self.name, listed, remedy))
