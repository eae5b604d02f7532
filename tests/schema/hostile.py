"""Schemas made to hurt whoever applies them, each with a value that it hurts with."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

Case = Tuple[Any, Any]


def nested(keyword: str, depth: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = {keyword: [schema, {"minLength": 1}]}
    return schema


def doubling(keyword: str, levels: int, leaf: Any) -> Any:
    """Each definition refers to the next one twice: two to the power of the levels."""
    definitions: Dict[str, Any] = {
        "d%d" % level: {keyword: [{"$ref": "#/$defs/d%d" % (level + 1)}] * 2} for level in range(levels)
    }
    definitions["d%d" % levels] = leaf
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def deep(levels: int) -> Any:
    schema: Any = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def deep_value(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def unevaluated(levels: int) -> Any:
    schema: Any = {"properties": {"a": True}}
    for level in range(levels):
        schema = {
            "anyOf": [schema, {"properties": {"p%d" % level: True}}],
            "unevaluatedProperties": {"type": "integer"},
        }
    return schema


def chain(length: int) -> Any:
    definitions: Dict[str, Any] = {"d%d" % n: {"$ref": "#/$defs/d%d" % (n + 1)} for n in range(length)}
    definitions["d%d" % length] = {"type": "integer"}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


AS = "a" * 5_000
WIDE = {"k%d" % n: n for n in range(2_000)}
LONG = list(range(8_000))
SAME_HASH = [n * (2**61 - 1) for n in range(1, 5_000)]
BIG = 10**4_000

PATTERNS: List[str] = [
    "^(a+)+$",
    "^(a*)*b$",
    "(a|aa)+$",
    "(a|a)*b",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*)*(.*)*(.*)*x",
    "(.*.*.*.*.*.*)=",
    "^(a?){500}a{500}$",
    "((a{1,50}){1,50}){1,50}b",
    "(?=(a+)+b)a",
    "(?<=(a+)+)b",
    "(?!(a|aa)*b).",
    "(a+)\\1+b",
    "^(\\w+\\s?)*$",
    "(" * 15 + "a*" + ")*" * 15 + "b",
    "|".join("a" * n for n in range(1, 60)) + "x",
    "[" + "".join(chr(0x4E00 + n) for n in range(1_500)) + "]+x",
    "(?:)" + "{99999}" + "b",
    "((?:){999}){999}",
    "(a{999}){999}",
]

CASES: Dict[str, Case] = {
    "allOf of allOf": (nested("allOf", 45), "x" * 1_000),
    "anyOf twice twice twice": (doubling("anyOf", 40, False), 1),
    "allOf twice twice twice": (doubling("allOf", 40, True), 1),
    "oneOf twice twice twice": (doubling("oneOf", 40, {"type": "string"}), 1),
    "refers to itself": ({"$ref": "#"}, 1),
    "refers to itself beside": ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
    "is not itself": ({"not": {"$ref": "#"}}, 1),
    "two that refer to one another": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        1,
    ),
    "refers to itself dynamically": ({"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}] * 3}, 1),
    "a dynamic loop of two resources": (
        {
            "$id": "urn:x",
            "$dynamicAnchor": "a",
            "$ref": "urn:y",
            "$defs": {"y": {"$id": "urn:y", "$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}] * 2}},
        },
        1,
    ),
    "a chain of references": (chain(1_500), 1),
    "nested": (deep(95), 1),
    "nested far too deeply": (deep(5_000), 1),
    "a tree over a deep value": ({"type": "array", "items": {"$ref": "#"}}, deep_value(900)),
    "uniqueItems of a deep value": ({"uniqueItems": True}, [deep_value(900)] * 2),
    "const that is deep": ({"const": deep_value(90)}, deep_value(900)),
    "if within if": (
        {"if": {"$ref": "#/$defs/a"}, "$defs": {"a": {"if": {"$ref": "#/$defs/a"}, "then": {"$ref": "#/$defs/a"}}}},
        1,
    ),
    "unevaluatedProperties within anyOf": (unevaluated(30), dict(WIDE, a=1)),
    "unevaluated twice twice twice": (
        doubling("anyOf", 30, {"unevaluatedProperties": False, "unevaluatedItems": False}),
        {"a": 1},
    ),
    "uniqueItems of many": ({"allOf": [{"uniqueItems": True}] * 50}, LONG),
    "uniqueItems of numbers with one hash": ({"uniqueItems": True}, SAME_HASH),
    "uniqueItems of objects": ({"allOf": [{"uniqueItems": True}] * 20}, [{"a": n, "b": [n]} for n in range(1_500)]),
    "an enum of a million": ({"enum": list(range(1_000_000))}, 1),
    "an enum of many, many times": ({"anyOf": [{"enum": [[n] for n in range(500)]}] * 90}, [LONG]),
    "minItems as large as can be": ({"minItems": BIG, "maxItems": BIG, "minLength": BIG}, []),
    "a number of many digits": ({"type": "integer", "minimum": 10**100_000}, 1),
    "multipleOf something tiny": ({"allOf": [{"multipleOf": 5e-324}] * 500}, 1e308),
    "multipleOf a large number": ({"allOf": [{"multipleOf": 10**1_000 + 1}] * 2_000}, BIG),
    "const of a large number": ({"anyOf": [{"const": 10**1_000 + n} for n in range(2_000)]}, BIG),
    "required of many, of many": ({"items": {"required": ["k%d" % n for n in range(3_000)]}}, [WIDE] * 2_000),
    "properties without number": ({"properties": {"k%d" % n: {} for n in range(60_000)}}, WIDE),
    "patterns times properties": ({"patternProperties": {"%d.*.*x$" % n: {} for n in range(500)}}, WIDE),
    "contains of contains": (
        {"contains": {"contains": {"contains": {"const": 1}}}, "minContains": 10**9},
        [[LONG[:100]] * 100] * 100,
    ),
    "propertyNames of many": ({"propertyNames": {"allOf": [{"pattern": "k.*1.*2"}] * 100}}, WIDE),
    "items of items": ({"allOf": [{"items": {"allOf": [True] * 200}}] * 20}, LONG),
    "many parts": ({"anyOf": [{"type": "string", "title": str(n)} for n in range(4_900)]}, 1),
    "too many parts": ({"anyOf": [{} for _ in range(20_000)]}, 1),
    "a long text": ({"description": "x" * 2_000_000}, 1),
    "a long $id": ({"$id": "http://x/" + "a/" * 100_000, "$ref": "#"}, 1),
    "many $ids": ({"$defs": {"d%d" % n: {"$id": "urn:%d" % n, "$dynamicAnchor": "a"} for n in range(1_500)}}, 1),
    "a $ref with many steps": ({"$ref": "#" + "/allOf" * 100_000, "allOf": [True]}, 1),
    "not a number": ({"multipleOf": 0.1, "minimum": 0}, float("nan")),
    "an infinite number": ({"multipleOf": 3, "type": "integer"}, float("inf")),
    **{"the pattern %.40s" % text: ({"pattern": text}, AS) for text in PATTERNS},
    **{"the pattern %.40s, short" % text: ({"pattern": text}, "a" * 28 + "!") for text in PATTERNS},
}
