"""The output schema of a tool: the schema of its responses, if all of them are JSON objects.

A client may validate every result against it. So a tool has none if a declared success response is not a JSON object.
"""

from collections.abc import Sequence
from itertools import islice
from typing import cast

import orjson
from msgspec.structs import replace

from gateway.domain.json_access import Object, as_object
from gateway.domain.updates.import_reports import ExampleCounts
from gateway.openapi.document.json_access import NOTHING, Unusable, list_at, object_at
from gateway.openapi.document.references import References
from gateway.openapi.operation.example_checks import ExampleChecks
from gateway.openapi.operation.example_positions import ExamplePositions
from gateway.openapi.operation.limits import MAX_OUTPUT_DEPTH, MAX_OUTPUT_SCHEMA_BYTES, MAX_OUTPUT_WARNINGS
from gateway.openapi.operation.media_types import essence, is_json, json_rank
from gateway.openapi.operation.parameters import with_examples
from gateway.openapi.operation.schema_assembly import Argument, assemble, closure, compiles, parts
from gateway.openapi.schema.components import Components
from gateway.openapi.schema.examples import holder_examples
from gateway.openapi.schema.relaxation import forget_disputed
from gateway.openapi.schema.translation import SchemaDialect

_RESULT = "result"
_ACCEPTS_ANYTHING = "; anything is accepted there"


class Outputs:
    """The output schemas of one document, without `writeOnly` properties and examples."""

    def __init__(self, references: References, dialect: SchemaDialect, positions: ExamplePositions) -> None:
        self._references = references
        self._components = Components(replace(dialect, hidden="writeOnly"))
        self._warnings = dialect.warnings
        self._follows_dynamic = dialect.has_siblings
        self._examples = ExampleChecks(
            self._components, dialect.values, warnings=dialect.warnings, positions=positions, is_output=True
        )

    @property
    def counts(self) -> ExampleCounts:
        """The number of examples of responses with each result."""
        return self._examples.counts

    def compose(self, answers: Sequence[Object], where: str) -> bytes | None:
        """Compose the schema of the results for these responses; what their examples contradict is relaxed.

        Returns None if a response is not a JSON object, or if the schema is not self-contained, valid and within 32
        KiB. A schema that refuses an example is left out with a warning, because clients would refuse such a result.
        """
        found = [media for answer in answers if (media := self._media(answer)) is not None]
        if not found or len(found) < len(answers):
            return None
        schemas = [media["schema"] for media in found]
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        node = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        examples = [value for media in found for value in holder_examples(media, self._references)]
        translated = with_examples(self._components.translate(node, where), examples)
        argument = Argument(name=_RESULT, translated=translated, where=where)
        needed = closure([argument], self._components)
        if any(part.external is not None for part in parts([argument], needed)):
            return None
        losses = dict.fromkeys(loss for part in parts([argument], needed) for loss in part.losses)
        for loss in islice(losses, MAX_OUTPUT_WARNINGS):
            self._warnings.add(where, f"{loss.removesuffix(_ACCEPTS_ANYTHING)}; the tool lists no output schema")
        if losses:
            return None
        (argument,), needed = self._examples.settle([argument], needed)
        refusals = list(islice(self._examples.refusals([argument], needed), MAX_OUTPUT_WARNINGS))
        for refusal in refusals:
            self._warnings.add(where, f"{refusal}; the tool lists no output schema")
        if refusals:
            return None
        whole = assemble([argument], needed, self._components).schema
        root = as_object(object_at(whole, "properties").get(_RESULT)) or NOTHING
        listed = {**root, "type": "object"} | ({"$defs": whole["$defs"]} if "$defs" in whole else {})
        schema = cast("dict[str, object]", forget_disputed(listed))
        text = orjson.dumps(schema)
        return text if len(text) <= MAX_OUTPUT_SCHEMA_BYTES and compiles(schema) else None

    def _media(self, answer: Object) -> Object | None:
        """The response's preferred JSON type; None if its schema is not an object."""
        content = object_at(answer, "content")
        named = [name for name in content if is_json(name) and "*" not in essence(name)]
        if not named:
            return None
        try:
            media = self._references.follow(content[min(named, key=json_rank)], "a media type")
        except Unusable:
            return None
        schema = as_object(media.get("schema"))
        return media if schema is not None and self._is_object(schema, {}, 0) else None

    def _is_object(self, node: object, known: dict[tuple[int, int], bool], depth: int) -> bool:
        """True if all values of the schema are objects; `known` has the result of each schema and depth once."""
        try:
            target = self._references.follow(node, "a schema")
        except Unusable:
            return False
        key = id(target), depth
        if key not in known:
            known[key] = self._describes_object(target, known, depth)
        return known[key]

    def _describes_object(self, target: Object, known: dict[tuple[int, int], bool], depth: int) -> bool:
        if target.get("nullable") is True or depth > MAX_OUTPUT_DEPTH:
            return False
        if "type" in target:
            return target["type"] == "object"
        if "$dynamicRef" in target and self._follows_dynamic:
            return True  # it is not resolved, so `compose` reports it
        if "properties" in target:
            return True
        if any(self._is_object(part, known, depth + 1) for part in list_at(target, "allOf")):
            return True
        chosen = [part for key in ("anyOf", "oneOf") for part in list_at(target, key)]
        return bool(chosen) and all(self._is_object(part, known, depth + 1) for part in chosen)
