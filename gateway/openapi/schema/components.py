"""The schemas that tools share: each referenced schema is translated once and named once per direction."""

import re
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec
from msgspec.structs import replace

from gateway.domain.json_access import encode_exact
from gateway.openapi.document.references import ref_tokens
from gateway.openapi.operation.names import Variants
from gateway.openapi.schema.definition_names import referenced_names
from gateway.openapi.schema.limits import MAX_BRANCHES, MAX_CACHED_CLOSURES, MAX_COMPONENT_NAME_LENGTH, MAX_SCHEMAS
from gateway.openapi.schema.relaxation import relax, shorten
from gateway.openapi.schema.translation import Schema, SchemaDialect, Translated, translate

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_TOO_BRANCHED = f"more than {MAX_BRANCHES} schemas apply to one value; anything is accepted there"
_LOOSENED = Translated(schema={}, losses=(_TOO_BRANCHED,), is_loosened=True)


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One referenced schema, in the form listed under `$defs`."""

    ref: str
    name: str
    translated: Translated
    text: bytes
    names: tuple[str, ...] = ()
    """Names of the referenced schemas; set for relaxed schemas only."""

    @property
    def schema(self) -> Schema:
        """The schema as listed."""
        return self.translated.schema


class Components:
    """The referenced schemas of one document, for its requests or its responses."""

    def __init__(self, dialect: SchemaDialect) -> None:
        self._dialect = dialect
        self._names: dict[str, str] = {}
        self._variants = Variants()
        self._components: dict[str, Component] = {}
        self._brief: dict[str, Component] = {}
        self._relaxed: dict[tuple[str, bool], Component] = {}
        self._weights: dict[str, int] = {}
        self._reaches: dict[tuple[str, ...], Sequence[str]] = {}
        self.compiled: set[str] = set()
        """Names of schemas that have compiled as a part of some tool's input schema."""

    def name_of(self, ref: str) -> str:
        """Return the name of the referenced schema under `$defs`: the last token of `ref`, cleaned and made unique."""
        if ref not in self._names:
            tokens = ref_tokens(ref)
            wanted = _NOT_A_NAME.sub("_", tokens[-1] if tokens else "document")[:MAX_COMPONENT_NAME_LENGTH] or "schema"
            self._names[ref] = self._variants.choose(wanted, f"{wanted}_{{}}".format)
        return self._names[ref]

    def translate(self, node: object, where: str) -> Translated:
        """Translate an inline schema. It accepts any value if more than `MAX_BRANCHES` schemas apply to one value."""
        translated = translate(node, where, self._dialect, self)
        weight = translated.branches + sum(self._branch_count(ref) for ref in translated.in_place)
        return translated if weight <= MAX_BRANCHES else _LOOSENED

    def closure(self, links: Iterable[str]) -> Sequence[Component]:
        """Return the schemas that these references reach, nearest first; at most `MAX_SCHEMAS` + 1."""
        start = tuple(dict.fromkeys(links))
        if start not in self._reaches:
            if len(self._reaches) >= MAX_CACHED_CLOSURES:
                self._reaches.clear()
            self._reaches[start] = self._reach(start)
        return [self._components[ref] for ref in self._reaches[start]]

    def _reach(self, start: Sequence[str]) -> Sequence[str]:
        seen = dict.fromkeys(start)
        queue = list(seen)
        for place, ref in enumerate(queue):
            if place > MAX_SCHEMAS:
                return queue[:place]
            if ref not in self._weights:
                self._branch_count(ref)
            for link in self._component(ref).translated.links:
                if link not in seen:
                    seen[link] = None
                    queue.append(link)
        return queue

    def within(self, refs: Iterable[str], room: int) -> Sequence[Component] | None:
        """Return the schemas that these references reach; None if their texts exceed `room` bytes."""
        found = dict.fromkeys(refs)
        queue = list(found)
        for ref in queue:
            component = self._component(ref)
            room -= len(component.text)
            if room < 0:
                return None
            queue += [link for link in component.translated.links if link not in found]
            found.update(dict.fromkeys(component.translated.links))
        return [self._component(ref) for ref in queue]

    def settle(self, ref: str, *, is_loosened: bool) -> None:
        """Record that a schema was relaxed in place; its text and shorter forms are encoded again."""
        self._brief.pop(ref, None)
        for is_brief in (True, False):
            self._relaxed.pop((ref, is_brief), None)
        translated = self._components[ref].translated
        self._keep(ref, replace(translated, is_loosened=translated.is_loosened or is_loosened))

    def brief(self, component: Component) -> Component:
        """Return the schema without titles and descriptions."""
        if component.ref not in self._brief:
            schema = cast("Schema", shorten(component.schema))
            translated = replace(component.translated, schema=schema)
            self._brief[component.ref] = replace(component, translated=translated, text=encode_exact(schema))
        return self._brief[component.ref]

    def relaxed(self, component: Component, *, is_brief: bool) -> Component:
        """Return the schema for shortened lists: relaxed, and without descriptions if `is_brief`."""
        key = (component.ref, is_brief)
        if key not in self._relaxed:
            schema = cast("Schema", relax(self.brief(component).schema if is_brief else component.schema))
            translated = replace(component.translated, schema=schema)
            names = tuple(dict.fromkeys(referenced_names(schema)))
            self._relaxed[key] = replace(component, translated=translated, text=encode_exact(schema), names=names)
        return self._relaxed[key]

    def forget_short_forms(self) -> None:
        """Free the shorter forms of the schemas, once the last tool is shortened."""
        self._brief.clear()
        self._relaxed.clear()

    def _component(self, ref: str) -> Component:
        if ref not in self._components:
            translated = translate(self._dialect.references.target(ref), ref.removeprefix("#"), self._dialect, self)
            self._keep(ref, translated)
        return self._components[ref]

    def _keep(self, ref: str, translated: Translated) -> None:
        text = encode_exact(translated.schema)
        self._components[ref] = Component(ref=ref, name=self.name_of(ref), translated=translated, text=text)

    def _branch_count(self, ref: str) -> int:
        """The number of schemas that apply to one value. A cycle counts once. Above the limit, anything is accepted."""
        opened: set[str] = set()
        stack = [ref]
        while stack:
            current = stack[-1]
            links = self._component(current).translated.in_place
            pending = [] if current in opened else [link for link in set(links) if link not in self._weights]
            opened.add(current)
            pending = [link for link in pending if link not in opened]
            if pending:
                stack += pending
                continue
            stack.pop()
            if current not in self._weights:
                self._weights[current] = self._settle(current, links)
        return self._weights[ref]

    def _settle(self, ref: str, links: Sequence[str]) -> int:
        weight = self._components[ref].translated.branches + sum(self._weights.get(link, 0) for link in links)
        if weight <= MAX_BRANCHES:
            return weight
        self._keep(ref, _LOOSENED)
        return 1
