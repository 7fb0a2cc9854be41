"""Reply schemas narrowed to one call, for small models: what can be named is listed, and the longest reply fits.

A model of a hundred million parameters repeats itself inside a string or a list until a bound stops it, so under the
full schemas most of its replies are cut off at the token limit, and a reply that is cut off can't be used.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

STRUCTURE = 2.0
"""Characters a token, at least, of keys, names and brackets; free text is taken at one (digits are tokens of their
own; SmolLM2 was seen to fill strings with them)."""
NUMBER = 10
"""Tokens of a number, at most: vLLM's grammar stops a bounded one after a few decimals."""
BOUNDS = ((24, 400), (12, 300), (8, 200), (4, 200), (3, 160), (2, 120), (2, 80), (1, 120), (1, 80), (1, 60), (1, 40))
"""Items of a list and characters of a string that are tried, at most, in this order (our choice)."""

Names = Mapping[str, Sequence[str | int]]


def fitted_schema(schema: Mapping[str, Any], *, tokens: int, names: Names | None = None) -> dict[str, Any]:
    """A JSON schema that allows less than `schema`, whose longest reply takes at most `tokens` tokens.

    Args:
        schema: as pydantic makes it, without recursion.
        tokens: the completion's limit.
        names: values that properties of a name can take in this call; null stays allowed where it was. A list whose
            items need a name of which there is none is to be empty.

    Raises:
        ValueError: The reply would not fit however short its strings and lists.
    """
    definitions = schema.get("$defs", {})
    needed = 0.0
    for items, characters in BOUNDS:
        narrowed = _narrowed(schema, definitions, names or {}, items, characters)
        assert narrowed is not None  # an object without properties is one still
        needed = longest(narrowed)
        if needed <= tokens:
            return narrowed
    form = schema.get("title")
    raise ValueError(
        f"max_tokens is {tokens}; a reply of the form {form!r} can take {needed:.0f} at its shortest bounds"
    )


def _narrowed(node: Any, definitions: Any, names: Names, items: int, characters: int) -> dict[str, Any] | None:
    """One node with its references put in place; None where nothing can satisfy it."""

    def inner(part: Any) -> dict[str, Any] | None:
        return _narrowed(part, definitions, names, items, characters)

    if "$ref" in node:
        return inner(definitions[node["$ref"].rpartition("/")[2]])
    node = {key: value for key, value in node.items() if key not in ("$defs", "title", "description")}
    if "anyOf" in node:
        node["anyOf"] = [part for part in map(inner, node["anyOf"]) if part is not None]
        return node if node["anyOf"] else None
    if node.get("type") == "string" and "enum" not in node:
        node["maxLength"] = min(characters, node.get("maxLength", characters))
    elif node.get("type") == "array":
        node["items"] = inner(node["items"])
        node["maxItems"] = min(items, node.get("maxItems", items)) if node["items"] else 0
        if not node["items"]:
            node |= {"items": {"type": "null"}, "minItems": 0}
    elif node.get("type") == "object":
        return _object(node, names, inner)
    return node


def _object(node: dict[str, Any], names: Names, inner: Any) -> dict[str, Any] | None:
    properties = {}
    for key, part in node.get("properties", {}).items():
        found = _listed(part, names[key]) if key in names else inner(part)
        if found is not None:
            properties[key] = found
        elif key in node.get("required", ()):
            return None
    return {**node, "properties": properties}


def _listed(part: Mapping[str, Any], values: Sequence[str | int]) -> dict[str, Any] | None:
    """A property that takes one of these values; or, where its schema allows it, null."""
    if part.get("type") == "array":
        inner = _listed(part["items"], values)
        return {**part, "items": inner or {"type": "null"}, "maxItems": min(len(values), part.get("maxItems", 1))}
    null = any(option.get("type") == "null" for option in part.get("anyOf", ()))
    listed = [*values, *([None] if null else [])]
    return {"enum": listed} if listed else None


def longest(node: Mapping[str, Any]) -> float:
    """Tokens of the longest reply that a schema without references allows, carefully estimated."""
    if "anyOf" in node:
        return max(map(longest, node["anyOf"]))
    if "const" in node or "enum" in node:
        values = node.get("enum", [node.get("const")])
        return max(len(json.dumps(value, ensure_ascii=False)) for value in values) / STRUCTURE
    match node.get("type"):
        case "string":
            return node["maxLength"] + 2
        case "array":
            return node["maxItems"] * (longest(node["items"]) + 1) + 2
        case "object":
            return 2 + sum(len(key) / STRUCTURE + 3 + longest(part) for key, part in node["properties"].items())
        case "number" | "integer":
            return NUMBER
    return 2  # true, false, null
