"""Branches of `oneOf` and `anyOf`, each restricted to the discriminator values that select it (decision 49).

A `oneOf` without a distinguishing discriminator becomes `anyOf`, because branches in documents overlap and an API
accepts a value that fits one of them. The values of a branch are those that its own schema lists, if they differ
between branches. Otherwise the values are those in `mapping`, or else the name of the schema. A value that the branch
itself does not allow is never added, because nothing would fit the branch.
"""

from collections.abc import Sequence

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import NOTHING, list_at, object_at, text_at
from gateway.openapi.document.references import ref_tokens
from gateway.openapi.schema.access import is_hidden
from gateway.openapi.schema.all_of import merged_schemas
from gateway.openapi.schema.discriminators import Discriminators
from gateway.openapi.schema.limits import MAX_DISCRIMINATOR_VALUES
from gateway.openapi.schema.property_values import PropertyValues, TooManySteps, Values, encode_value

_REFERRING = frozenset(("$ref", "title", "description"))
_SUFFIXES = (".json", ".yaml", ".yml")


def narrow_branches(out: dict[str, object], node: Object, hierarchies: Discriminators, hidden: str) -> None:
    """Narrow the translated branches by the discriminator of their schema; an undecided `oneOf` becomes `anyOf`.

    A property of the other direction, with the keyword `hidden`, decides nothing.
    """
    keyword = "oneOf" if "oneOf" in out else "anyOf"
    parts, branches = list_at(node, keyword), as_list(out[keyword]) or ()
    discriminator = BranchDiscriminator(node.get("discriminator"), hierarchies)
    values = () if any(discriminator.is_hidden(part, hidden) for part in parts) else discriminator.divide(parts)
    if discriminator.name is not None and values:
        required = [
            discriminator.requires(part) and not _has_subtypes(part, branch)
            for part, branch in zip(parts, branches, strict=True)
        ]
        branches = [
            branch if _has_subtypes(part, branch) else discriminator.narrow(branch, own, is_required=is_required)
            for part, branch, own, is_required in zip(parts, branches, values, required, strict=True)
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

    def __init__(self, value: object, hierarchies: Discriminators) -> None:
        node = as_object(value) or NOTHING
        self.name = value if isinstance(value, str) and value else text_at(node, "propertyName")
        self._hierarchies = hierarchies
        self._references, self._steps = hierarchies.references, hierarchies.steps
        self._property = PropertyValues(self.name or "", self._references, self._steps, self._nested)
        self._mapped: dict[str, list[str]] = {}
        for text, target in object_at(node, "mapping").items():
            if isinstance(target, str):
                self._mapped.setdefault(self._canonical(target), []).append(text)

    def divide(self, parts: Sequence[object]) -> Sequence[Values]:
        """Return the values of each branch; empty if two branches would share a value, or one would have none."""
        if self.name is None:
            return ()
        self._steps.start(len(parts))
        try:
            own = [self._property.listed(part) for part in parts]
            divided = [values for values in own if values]
            if len(divided) == len(own) and not _overlap(divided):
                return divided
            found = [self._selected(part, values) for part, values in zip(parts, own, strict=True)]
        except TooManySteps:
            return ()
        return found if all(found) and not _overlap(found) else ()

    def values_of(self, ref: str) -> Values:
        """Return the values that select the schema at `ref`; none if the schema lists values or allows none of them."""
        part = {"$ref": ref}
        self._steps.start(1)
        try:
            return self._selected(part, None) if self._property.listed(part) is None else ()
        except TooManySteps:
            return ()

    def is_hidden(self, part: object, keyword: str) -> bool:
        """True if the property has the keyword in the schema of a branch."""
        merged = merged_schemas(part, self._references) if self.name is not None else ()
        declared = [object_at(schema, "properties").get(self.name or "") for schema in merged]
        return any(is_hidden(schema, self._references, keyword) for schema in declared)

    def requires(self, part: object) -> bool:
        """True if the schema of a branch requires the property."""
        return any(self.name in list_at(schema, "required") for schema in merged_schemas(part, self._references))

    def narrow(self, branch: object, values: Values, *, is_required: bool) -> object:
        """Return the translated branch with these values of the property."""
        mapping = as_object(branch)
        if mapping is None or self.name is None:
            return branch
        value: dict[str, object] = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
        added: dict[str, object] = {"properties": {self.name: value}}
        added |= {"required": [self.name]} if is_required else {}
        return {**mapping, **added} if mapping.keys() <= _REFERRING else {"allOf": [mapping, added]}

    def _selected(self, part: object, listed: Values | None) -> Values:
        """The values of the mapping, or else the name, as far as the branch itself allows them."""
        ref = (as_object(part) or NOTHING).get("$ref")
        named = self._named(ref) if isinstance(ref, str) else ()
        if listed is not None:
            return [value for value in named if value in listed] or listed
        return named if all(self._property.permits(part, value) for value in named) else ()

    def _nested(self, schema: Object, keyword: str) -> Values | None:
        """The values that a choice inside a branch divides by the same property; None if it does not."""
        nested = BranchDiscriminator(schema.get("discriminator"), self._hierarchies)
        values = nested.divide(list_at(schema, keyword)) if nested.name == self.name else ()
        return [value for own in values for value in own] or None

    def _named(self, ref: str) -> Sequence[str]:
        spelled = self._canonical(ref)
        name = _name_of(spelled)
        return self._mapped.get(spelled, self._mapped.get(name, [name]))[:MAX_DISCRIMINATOR_VALUES]

    def _canonical(self, target: str) -> str:
        """The canonical spelling of a reference; for a name, or a file that became a component, the name."""
        return self._references.canonical(target) if target.startswith("#") else _name_of(target.partition("#")[0])


def _has_subtypes(part: object, branch: object) -> bool:
    """True if the translated branch is a choice between the schema and its implied subtypes with other values."""
    return "$ref" in (as_object(part) or NOTHING) and "$ref" not in (as_object(branch) or NOTHING)


def _name_of(text: str) -> str:
    """The last token of a reference, or the name of a file without its suffix."""
    last = (ref_tokens(text) or [""])[-1] if text.startswith("#") else text.rpartition("/")[2]
    return next((last.removesuffix(suffix) for suffix in _SUFFIXES if last.endswith(suffix)), last)


def _overlap(values: Sequence[Values]) -> bool:
    everything = [key for own in values for key in {encode_value(value) for value in own}]
    return len(set(everything)) < len(everything)
