"""Schemas made into functions, once, so that applying one costs little.

Each schema becomes a function of a value. For each kind of value it has a tuple of checks, made by
:mod:`~mcpsync.schema.keywords` and :mod:`~mcpsync.schema.applicators`; what ``type`` says is in that table too. What
the dialect's meta-schema would refuse has been refused before.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type

from mcpsync.schema import applicators
from mcpsync.schema.keywords import ASSERTIONS, choice, constant
from mcpsync.schema.patterns import Pattern
from mcpsync.schema.resources import Resource, Resources, Target
from mcpsync.schema.values import KINDS, kind_of
from mcpsync.schema.work import Check, Evaluated, Fault, TooMuchWork, Work

__all__ = ["Compiler"]

_ALL_KINDS: Tuple[Type[Any], ...] = (*KINDS.values(), object)
_OBJECT = (dict,)
_ARRAY = (list,)

_Rules = List[Tuple[Optional[Tuple[Type[Any], ...]], Check]]
"""Checks, each with the kinds of values that it is about; None for all."""


class _Later:
    """A schema that references lead to, before and after it is compiled."""

    __slots__ = ("check", "resource", "schema")

    def __init__(self, schema: Any, resource: Resource) -> None:
        self.schema = schema
        self.resource = resource
        self.check: Check = _anything


class Compiler:
    """Compiles one schema and all that its references lead to.

    :param resources: where these lead
    :param verify: called with a schema before it is used, if it stands where the meta-schema does not see it
    """

    def __init__(self, resources: Resources, verify: Callable[[Any], None]) -> None:
        self._resources = resources
        self._verify = verify
        self._made: Dict[Tuple[int, int], _Later] = {}
        self._waiting: List[_Later] = []

    def compile(self, root: Resource) -> Check:
        """
        :raises Unusable: something in it leads out of the schema, or nowhere
        """
        first = self._later(root.root, root)
        while self._waiting:
            later = self._waiting.pop()
            later.check = self._schema(later.schema, later.resource)
            if not self._waiting:
                for resource in self._resources:
                    for schema in resource.dynamic.values():
                        self._later(schema, resource)
        # references are only ever followed by the way that led to them where some resource has such names
        return _entering(root, first.check) if any(each.dynamic for each in self._resources) else first.check

    def _later(self, schema: Any, resource: Resource) -> _Later:
        key = (id(schema), id(resource))
        later = self._made.get(key)
        if later is None:
            later = self._made[key] = _Later(schema, resource)
            self._waiting.append(later)
        return later

    # -- one schema --------------------------------------------------------------------------------------------

    def _schema(self, schema: Any, outer: Resource) -> Check:
        if schema is True:
            return _anything
        if schema is False:
            return _nothing
        resource = self._resources.of(schema, outer)
        check = self._node(schema, resource)
        return check if resource is outer else _entering(resource, check)

    def _node(self, schema: Mapping[str, Any], resource: Resource) -> Check:
        modern = resource.dialect.modern
        if "$ref" in schema and not modern:  # what stands beside it does not count
            return _branch({}, [(None, self._reference(schema["$ref"], resource))], [])
        own: _Rules = []
        for keyword, value in schema.items():
            if keyword == "const":
                own.append((None, constant(value)))
            elif keyword == "enum":
                own.append((None, choice("enum", value)))
            elif keyword in ASSERTIONS and (modern or keyword != "dependentRequired"):
                kinds, make = ASSERTIONS[keyword]
                check = make(value)
                if check is not None:
                    own.append((kinds, check))
        inner = (
            self._in_place(schema, resource) + self._of_objects(schema, resource) + self._of_arrays(schema, resource)
        )
        last = self._unevaluated(schema, resource) if modern else []
        types = schema.get("type")
        table = {} if types is None else _types([types] if isinstance(types, str) else types)
        return _branch(table, own + inner, last) if inner or last else _leaf(table, own)

    def _in_place(self, schema: Mapping[str, Any], resource: Resource) -> _Rules:
        rules: _Rules = []
        if "$ref" in schema:
            rules.append((None, self._reference(schema["$ref"], resource)))
        if "$dynamicRef" in schema and resource.dialect.modern:
            rules.append((None, self._dynamic_reference(schema["$dynamicRef"], resource)))
        for keyword, make in (
            ("allOf", applicators.all_of),
            ("anyOf", applicators.any_of),
            ("oneOf", applicators.one_of),
        ):
            if keyword in schema:
                rules.append((None, make([self._schema(each, resource) for each in schema[keyword]])))
        if "not" in schema:
            rules.append((None, applicators.negated(self._schema(schema["not"], resource))))
        if "if" in schema:
            branches = [self._schema(schema[key], resource) if key in schema else None for key in ("then", "else")]
            rules.append((None, applicators.conditional(self._schema(schema["if"], resource), *branches)))
        return rules

    def _of_objects(self, schema: Mapping[str, Any], resource: Resource) -> _Rules:
        rules: _Rules = []
        modern = resource.dialect.modern
        known = schema.get("properties", {})
        if known:
            table = [(name, self._schema(each, resource)) for name, each in known.items()]
            rules.append((_OBJECT, applicators.properties(table)))
        patterns = [
            (Pattern(text), self._schema(each, resource)) for text, each in schema.get("patternProperties", {}).items()
        ]
        rest = self._optional(schema, "additionalProperties", resource)
        if patterns or rest is not None:
            forbidden = schema.get("additionalProperties") is False
            rules.append((_OBJECT, applicators.further_properties(frozenset(known), patterns, rest, forbidden)))
        names = self._optional(schema, "propertyNames", resource)
        if names is not None:
            rules.append((_OBJECT, applicators.property_names(names)))
        depending = schema.get("dependentSchemas" if modern else "dependencies", {})
        pairs = [(name, self._schema(each, resource)) for name, each in depending.items() if not isinstance(each, list)]
        if pairs:
            rules.append((_OBJECT, applicators.dependent(pairs)))
        lists = {name: each for name, each in depending.items() if isinstance(each, list)}
        check = ASSERTIONS["dependentRequired"][1](lists) if lists else None
        if check is not None:
            rules.append((_OBJECT, check))
        return rules

    def _of_arrays(self, schema: Mapping[str, Any], resource: Resource) -> _Rules:
        rules: _Rules = []
        modern = resource.dialect.modern
        prefix_key, rest_key = "prefixItems", "items"
        if not modern and isinstance(schema.get("items"), list):
            prefix_key, rest_key = "items", "additionalItems"
        first = schema.get(prefix_key, []) if modern or prefix_key == "items" else []
        if first:
            checks = [self._schema(each, resource) for each in first]
            rules.append((_ARRAY, applicators.prefix_items(checks)))
        rest = self._optional(schema, rest_key, resource)
        if rest is not None:
            forbidden = schema[rest_key] is False
            rules.append((_ARRAY, applicators.items_from(len(first), rest, rest_key, forbidden)))
        contains = self._optional(schema, "contains", resource)
        if contains is not None:
            least, most = (schema.get("minContains", 1), schema.get("maxContains")) if modern else (1, None)
            rules.append((_ARRAY, applicators.contained(contains, least, most, modern)))
        return rules

    def _unevaluated(self, schema: Mapping[str, Any], resource: Resource) -> _Rules:
        rules: _Rules = []
        for keyword, kinds, make in (
            ("unevaluatedProperties", _OBJECT, applicators.unevaluated_properties),
            ("unevaluatedItems", _ARRAY, applicators.unevaluated_items),
        ):
            inner = self._optional(schema, keyword, resource)
            if inner is not None:
                rules.append((kinds, make(inner, schema[keyword] is False)))
        return rules

    def _optional(self, schema: Mapping[str, Any], keyword: str, resource: Resource) -> Optional[Check]:
        return self._schema(schema[keyword], resource) if keyword in schema else None

    # -- references --------------------------------------------------------------------------------------------

    def _reference(self, reference: str, resource: Resource) -> Check:
        return self._to(self._target(reference, resource), resource)

    def _target(self, reference: str, resource: Resource) -> Target:
        target = self._resources.target(reference, resource)
        if not target.known:
            self._verify(target.schema)
            self._resources.adopt(target.schema, target.resource)
            target = target._replace(resource=self._resources.of(target.schema, target.resource))
        return target

    def _to(self, target: Target, resource: Resource) -> Check:
        later = self._later(target.schema, target.resource)

        def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
            return later.check(value, work, seen)

        return check if target.resource is resource else _entering(target.resource, check)

    def _dynamic_reference(self, reference: str, resource: Resource) -> Check:
        target = self._target(reference, resource)
        static = self._to(target, resource)
        name = target.dynamic
        if not name:
            return static

        def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
            for outer in work.scope:
                if name in outer.dynamic:
                    later = self._later(outer.dynamic[name], outer)
                    work.scope.append(outer)
                    fault = later.check(value, work, seen)
                    work.scope.pop()
                    return fault
            return static(value, work, seen)

        return check


# -- what schemas become -------------------------------------------------------------------------------------------


def _anything(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
    work.left -= 1
    return None


def _nothing(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
    work.charge(1)
    return Fault("false", "nothing", value)


def _entering(resource: Resource, check: Check) -> Check:
    def entered(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        work.scope.append(resource)
        fault = check(value, work, seen)
        work.scope.pop()
        return fault

    return entered


def _types(names: Sequence[str]) -> Dict[Type[Any], Optional[Check]]:
    """For each kind of value that ``type`` does not simply admit, what it says of it."""
    expected = " or ".join(names)

    def refused(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        return Fault("type", expected, value)

    def whole(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        return None if value.is_integer() else Fault("type", expected, value)

    admitted = {KINDS[name] for name in names}
    if "number" in names:
        admitted.add(int)
    table: Dict[Type[Any], Optional[Check]] = {kind: None if kind in admitted else refused for kind in _ALL_KINDS}
    if "integer" in names and "number" not in names:
        table[float] = whole
    return table


def _no_json(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
    return Fault("type", "a JSON value", value)


def _table(types: Mapping[Type[Any], Optional[Check]], rules: _Rules) -> Dict[Type[Any], Tuple[Check, ...]]:
    table: Dict[Type[Any], Tuple[Check, ...]] = {}
    for kind in _ALL_KINDS:
        first = _no_json if kind is object else types.get(kind)
        checks = [] if first is None else [first]
        checks += [check for kinds, check in rules if kinds is None or kind in kinds]
        table[kind] = tuple(checks)
    return table


def _leaf(types: Mapping[Type[Any], Optional[Check]], rules: _Rules) -> Check:
    """A schema without others in it."""
    if not types and not rules:
        return _anything
    table = _table(types, rules)

    def leaf(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        work.left -= 1
        if work.left < 0:
            work.refill()
        checks = table.get(type(value))
        for check in table[kind_of(value)] if checks is None else checks:
            fault = check(value, work, seen)
            if fault is not None:
                return fault
        return None

    return leaf


def _branch(types: Mapping[Type[Any], Optional[Check]], rules: _Rules, last: _Rules) -> Check:
    """A schema with others in it.

    :param last: what needs to know what the rest has looked at
    """
    table = _table(types, rules)

    def branch(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        work.left -= 1
        if work.left < 0:
            work.refill()
        depth = work.depth
        if depth <= 0:
            raise TooMuchWork("schema or value are nested too deeply to be checked")
        work.depth = depth - 1
        checks = table.get(type(value))
        for check in table[kind_of(value)] if checks is None else checks:
            fault = check(value, work, seen)
            if fault is not None:
                break
        else:
            fault = None
        work.depth = depth
        return fault

    return _collecting(branch, last) if last else branch


def _collecting(branch: Check, last: _Rules) -> Check:
    closing = {kind: tuple(check for kinds, check in last if kinds is None or kind in kinds) for kind in _ALL_KINDS}

    def collecting(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        own = Evaluated()
        fault = branch(value, work, own)
        kind = type(value) if type(value) in closing else kind_of(value)
        for check in closing[kind]:
            if fault is not None:
                break
            work.depth -= 1
            fault = check(value, work, own)
            work.depth += 1
        if fault is None and seen is not None:
            seen.add(own)
        return fault

    return collecting
