"""Branches of `oneOf` and `anyOf`, each restricted to the discriminator values that select it (decision 49).

A `oneOf` without a distinguishing discriminator becomes `anyOf`, because branches in documents overlap and an API
accepts a value that fits one of them. The values of a branch are those that its own schema allows, if they differ
between branches. Otherwise the values are those in `mapping`, or else the name of the schema.
"""

from collections.abc import Sequence
from typing import cast

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, list_at, object_at, text_at
from gateway.openapi.document.references import References, ref_tokens

_MAX_MERGED = 200
_MAX_VALUES = 200
_REFERRING = frozenset(("$ref", "title", "description"))
_SUFFIXES = (".json", ".yaml", ".yml")

Values = Sequence[str]


def narrow_branches(out: dict[str, object], node: Object, references: References) -> None:
    """Narrow the translated branches by the discriminator of their schema; an undecided `oneOf` becomes `anyOf`."""
    keyword = "oneOf" if "oneOf" in out else "anyOf"
    parts, branches = list_at(node, keyword), as_list(out[keyword]) or ()
    discriminator = BranchDiscriminator(node.get("discriminator"), references)
    values = discriminator.divide(parts)
    if discriminator.name is not None and values:
        required = [discriminator.requires(part) for part in parts]
        branches = [
            discriminator.narrow(branch, own, is_required=is_required)
            for branch, own, is_required in zip(branches, values, required, strict=True)
        ]
        out[keyword] = branches
        if all(required):
            return
    if keyword == "anyOf":
        return
    del out["oneOf"]
    if "anyOf" in out:
        out["allOf"] = [*(as_list(out.get("allOf")) or ()), {"anyOf": branches}]
    else:
        out["anyOf"] = branches


class BranchDiscriminator:
    """The discriminator of one schema: an object of OpenAPI 3, or the name of a property in Swagger 2.0."""

    def __init__(self, value: object, references: References) -> None:
        node = as_object(value) or NOTHING
        self.name = value if isinstance(value, str) and value else text_at(node, "propertyName")
        self._references = references
        self._mapped: dict[str, list[str]] = {}
        for text, target in object_at(node, "mapping").items():
            if isinstance(target, str):
                self._mapped.setdefault(self._canonical(target), []).append(text)

    def divide(self, parts: Sequence[object]) -> Sequence[Values]:
        """Return the values of each branch; empty if two branches would share a value."""
        if self.name is None:
            return ()
        own = [self._allowed(part) for part in parts]
        if all(own) and not _overlap(own):
            return own
        found = [self._allowed_of(part, allowed) for part, allowed in zip(parts, own, strict=True)]
        return found if all(found) and not _overlap(found) else ()

    def values_of(self, ref: str) -> Values:
        """Return the values that select the schema at `ref`; none if the schema declares values itself."""
        return () if self._allowed({"$ref": ref}) else self._named(ref)

    def requires(self, part: object) -> bool:
        """True if the schema of a branch requires the property."""
        return any(self.name in list_at(schema, "required") for schema in self._merged(part))

    def narrow(self, branch: object, values: Values, *, is_required: bool) -> object:
        """Return the translated branch with these values of the property."""
        mapping = as_object(branch)
        if mapping is None or self.name is None:
            return branch
        value: dict[str, object] = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
        added: dict[str, object] = {"properties": {self.name: value}}
        added |= {"required": [self.name]} if is_required else {}
        return {**mapping, **added} if mapping.keys() <= _REFERRING else {"allOf": [mapping, added]}

    def _allowed_of(self, part: object, allowed: Values) -> Values:
        """The values of the mapping, or else the name, as far as the branch itself allows them."""
        ref = (as_object(part) or NOTHING).get("$ref")
        named = self._named(ref) if isinstance(ref, str) else ()
        return [value for value in named if value in allowed] or allowed or named

    def _named(self, ref: str) -> Values:
        spelled = self._canonical(ref)
        name = _name_of(spelled)
        return self._mapped.get(spelled, self._mapped.get(name, [name]))[:_MAX_VALUES]

    def _canonical(self, target: str) -> str:
        """The canonical spelling of a reference; for a name, or a file that became a component, the name."""
        return self._references.canonical(target) if target.startswith("#") else _name_of(target.partition("#")[0])

    def _allowed(self, part: object) -> Values:
        """The strings that a branch allows for the property by `const` or `enum`; empty if it allows others."""
        for schema in self._merged(part):
            known = self._target(object_at(schema, "properties").get(self.name or ""))
            values: Sequence[object] = [known["const"]] if "const" in known else list_at(known, "enum")
            if values and all(isinstance(value, str) for value in values):
                return cast("Values", values)
        return ()

    def _merged(self, part: object) -> Sequence[Object]:
        """The schema and the parts of its `allOf`, also nested; at most 200."""
        found = [self._target(part)]
        seen = {id(found[0])}
        for schema in found:
            for inner in map(self._target, list_at(schema, "allOf")):
                if id(inner) not in seen and len(found) < _MAX_MERGED:
                    seen.add(id(inner))
                    found.append(inner)
        return found

    def _target(self, part: object) -> Object:
        if as_object(part) is None:
            return NOTHING
        try:
            return self._references.follow(part, "a schema")
        except Unusable:
            return NOTHING


def _name_of(text: str) -> str:
    """The last token of a reference, or the name of a file without its suffix."""
    last = (ref_tokens(text) or [""])[-1] if text.startswith("#") else text.rpartition("/")[2]
    return next((last.removesuffix(suffix) for suffix in _SUFFIXES if last.endswith(suffix)), last)


def _overlap(values: Sequence[Values]) -> bool:
    everything = [value for own in values for value in set(own)]
    return len(set(everything)) < len(everything)
