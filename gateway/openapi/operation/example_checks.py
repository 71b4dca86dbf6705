"""Checks of a document's values against the listed schemas, and what they relax in the schemas (decision 49).

An example is evidence of what the API accepts. A keyword that contradicts an example is relaxed if a rule covers it:
limits, formats, patterns and closed lists of values are dropped, and a type is widened by null or another scalar. Any
other contradiction is a note; it takes nothing from the tool. A default that contradicts a reference beside it is
dropped. Sizes, numbers and visits are limited before a check begins.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from gateway.domain.json_access import as_list, as_object, point
from gateway.domain.updates.import_reports import ExampleCounts
from gateway.openapi.document.json_access import clean_text
from gateway.openapi.operation.example_positions import ExamplePositions
from gateway.openapi.operation.limits import (
    MAX_COMPILED_BYTES,
    MAX_COPIED_BYTES,
    MAX_EXAMPLES,
    MAX_FAULT_LENGTH,
    MAX_TOTAL_VISITS,
)
from gateway.openapi.operation.schema_assembly import Argument
from gateway.openapi.schema.components import Component, Components
from gateway.openapi.schema.definition_names import referenced_names
from gateway.openapi.schema.examples import (
    Path,
    count_visits,
    is_leaf,
    is_plain,
    listed_examples,
    nodes_with,
    read_text,
    size_of,
)
from gateway.openapi.schema.json_types import has_type, type_of, types_of
from gateway.openapi.schema.limits import MAX_CHECKED_BYTES, MAX_EXAMPLE_BYTES, MAX_VISITS
from gateway.openapi.schema.translation import Translated
from gateway.openapi.schema.value_checks import ValueChecks, compile_schema
from gateway.openapi.schema.widening import widen
from gateway.openapi.warnings import Warnings

_ROUNDS = 8
_CHOICES = frozenset(("anyOf", "oneOf"))


class _SchemaContext(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of an example, and the shared schemas that it references, by name.

    `is_whole` is True if the example is the complete value of a parameter or body. A member that such an example lacks
    is not required.
    """

    node: dict[str, object]
    path: Path
    texts: frozenset[Path]
    is_whole: bool
    shared: Mapping[str, Component]
    definitions: Mapping[str, object]
    """The `shared` schemas in the form for `$defs`."""

    def is_text(self, inner: Sequence[object] = ()) -> bool:
        """True if the value at a path inside the schema is sent as text, so that its text form is accepted too."""
        return (*self.path, *inner) in self.texts


class ExampleChecks:
    """Checks of the examples in one document's requests or responses, with a common budget; counts the results.

    An output schema (`is_output`) lists no examples, and its results remain objects.
    """

    def __init__(
        self,
        components: Components,
        values: ValueChecks,
        *,
        warnings: Warnings,
        positions: ExamplePositions,
        is_output: bool = False,
    ) -> None:
        self._components = components
        self._values = values
        self._warnings = warnings
        self._positions = positions
        self._is_output = is_output
        self._refusals: dict[str, Sequence[str]] = {}
        self._settled: set[str] = set()
        self._arguments: dict[str, bool] = {}
        self._relaxed_refs: set[str] = set()
        self._is_loosened = False
        self._counts: dict[str, int] = dict.fromkeys(("accepted", "relaxed", "refused", "unchecked"), 0)
        self._visits = MAX_TOTAL_VISITS
        self._bytes = MAX_COMPILED_BYTES

    @property
    def counts(self) -> ExampleCounts:
        """The number of examples with each result."""
        return ExampleCounts(**self._counts)

    def settle(
        self, arguments: Sequence[Argument], needed: Sequence[Component]
    ) -> tuple[Sequence[Argument], Sequence[Component]]:
        """Check the examples of these arguments and of the shared schemas that they need; relax contradicted keywords.

        Each shared schema is checked once. The results contain the relaxed schemas.
        """
        fresh = [part for part in needed if part.translated.has_values and part.ref not in self._settled]
        if not fresh and not any(argument.translated.has_values for argument in arguments):
            return arguments, needed
        whole = {ref for argument in arguments for ref in argument.translated.in_place}
        for component in fresh:
            self._settled.add(component.ref)
            where = component.ref.removeprefix("#")
            is_loosened = self._check_schema(component.translated, where, is_whole=component.ref in whole)
            self._components.settle(component.ref, is_loosened=is_loosened)
        for component in fresh:  # after all examples, because they relax schemas
            if self._drop_defaults(component.translated, component.ref.removeprefix("#")):
                self._components.settle(component.ref, is_loosened=False)
        settled = [self._settle_argument(argument) for argument in arguments]
        for ref in self._relaxed_refs:
            self._components.settle(ref, is_loosened=True)
        self._relaxed_refs.clear()
        return settled, self._components.closure(link for item in settled for link in item.translated.links)

    def refusals(self, arguments: Sequence[Argument], needed: Sequence[Component]) -> Iterator[str]:
        """Yield the faults of refused examples of these arguments and shared schemas, once they are settled."""
        for where in (*(item.where for item in arguments), *(part.ref.removeprefix("#") for part in needed)):
            yield from self._refusals.get(where, ())

    def _settle_argument(self, argument: Argument) -> Argument:
        translated = argument.translated
        if not translated.has_values:
            return argument
        if argument.where not in self._arguments:  # several operations may share a parameter
            self._arguments[argument.where] = self._check_schema(translated, argument.where, texts=argument.texts)
            self._drop_defaults(translated, argument.where)
        if translated.is_loosened or not self._arguments[argument.where]:
            return argument
        return replace(argument, translated=replace(translated, is_loosened=True))

    def _check_schema(
        self, translated: Translated, where: str, *, texts: frozenset[Path] = frozenset(), is_whole: bool = True
    ) -> bool:
        """Check every schema with examples inside one schema; True if it was loosened."""
        self._is_loosened = False
        refused: dict[str, None] = {}
        shared: Mapping[str, Component] = {}
        definitions: Mapping[str, object] = {}
        for path, node in nodes_with("examples", translated.schema):
            if not shared and not is_leaf(node):
                shared = {component.name: component for component in self._components.closure(translated.links)}
                definitions = {name: component.schema for name, component in shared.items()}
            context = _SchemaContext(
                node=node,
                path=path,
                texts=texts,
                is_whole=is_whole and not path,
                shared=shared,
                definitions=definitions,
            )
            fitting: list[object] = []
            for value in cast("list[object]", node.pop("examples")):
                fault = self._fault_of_example(value, context, fitting)
                if fault is not None:
                    position = self._positions.find(where, path, value)
                    refused[f"the example at {position} does not fit its schema: {fault}"] = None
            fitting += cast("list[object]", node.pop("examples", []))  # values of an `enum` that was dropped
            if listed := () if self._is_output else listed_examples(fitting, node, is_whole=not path):
                node["examples"] = listed
        if refused and self._is_output:
            self._refusals[where] = tuple(refused)
        elif refused:
            for fault in refused:
                self._warnings.note("", fault)
        return self._is_loosened

    def _drop_defaults(self, translated: Translated, where: str) -> bool:
        """Drop each default that violates the references beside it; True if one was dropped."""
        links = {self._components.name_of(link): link for link in translated.links}
        is_dropped = False
        for path, node in nodes_with("default", translated.schema):
            names = set(referenced_names(node)) if links and not is_leaf(node) else ()
            if names and self._violates(node, [links[name] for name in names if name in links]):
                del node["default"]
                self._warnings.add(where + point(*path), "`default` does not match its schema; dropped")
                is_dropped = True
        return is_dropped

    def _violates(self, node: dict[str, object], links: Sequence[str]) -> bool:
        """True if the default of a schema violates it. Schemas that need much work are not checked."""
        shared = self._components.within(links, MAX_CHECKED_BYTES)
        if shared is None or self._visits < 0 or not self._values.affords(node, sum(len(part.text) for part in shared)):
            return False
        definitions = {part.name: part.schema for part in shared}
        visits, _ = count_visits(node, node["default"], definitions)
        self._visits -= visits
        if visits > MAX_VISITS:  # guard: linked-defaults-bounded
            return False
        check = self._values.validator({**node, "$defs": definitions})
        return check is not None and not check.is_valid(node["default"])

    def _fault_of_example(self, value: object, context: _SchemaContext, fitting: list[object]) -> str | None:
        """Return the fault of an example that fits in no form; add a fitting example to `fitting`."""
        result, found = self._fit(value, context)
        self._counts[result] += 1
        if result == "refused":
            return str(found)
        if result != "unchecked":
            fitting.append(found)
        return None

    def _fit(self, value: object, context: _SchemaContext) -> tuple[str, object]:
        """Return the result of the check, and the fitting value or the fault."""
        if self._is_output and context.is_whole:  # the listed root is of type object, also if the document has no type
            value = read_text(value)
            if as_object(value) is None:
                return "refused", f"{type_of(value)} is not of type object"
        if is_plain(context.node) and has_type(value, types_of(context.node)):
            return "accepted", value
        check = self._check(value, context)
        if check is None:
            return "unchecked", None
        if check.is_valid(value):
            return "accepted", value
        if not context.is_text():
            read = read_text(value)
            if read is not value and (other := self._check(read, context)) is not None and other.is_valid(read):
                return "accepted", read
        return self._relax(value, context, check)

    def _check(self, value: object, context: _SchemaContext) -> Any:
        """Compile the schema for a check of the value; None if the check would exceed a limit."""
        if self._bytes < 0 or self._visits < 0:  # before the visits are counted
            return None
        size = size_of(value)
        if size is None or size > MAX_EXAMPLE_BYTES or sum(self._counts.values()) >= MAX_EXAMPLES:
            return None
        definitions: dict[str, object] = {}
        if not is_leaf(context.node):
            visits, reached = count_visits(context.node, value, context.definitions)
            self._visits -= visits
            if visits > MAX_VISITS or visits * size > MAX_COPIED_BYTES:
                return None
            self._bytes -= sum(len(context.shared[name].text) for name in reached & context.shared.keys())
            definitions = {name: part if name in reached else True for name, part in context.definitions.items()}
        if self._bytes < 0 or self._visits < 0:
            return None
        if is_leaf(context.node):
            return self._values.validator(context.node)
        return compile_schema({**context.node, "$defs": definitions})

    def _relax(self, value: object, context: _SchemaContext, check: Any) -> tuple[str, object]:
        """Relax the schemas until the value fits. They stay relaxed up to the first fault that no rule covers."""
        for _ in range(_ROUNDS):
            errors = list(check.iter_errors(value))
            if not errors:
                return "relaxed", value
            for error in errors:
                if not self._relax_error(error, context):
                    return "refused", _shown(error)
            check = self._check(value, context)
            if check is None:
                return "unchecked", None
        return "refused", "it has too many violations"

    def _relax_error(self, error: Any, context: _SchemaContext) -> bool:
        if error.kind.name in _CHOICES:
            branches: list[list[Any]] = [branch for branch in error.kind.context if branch]
            if not branches:
                return False
            nearest = min(branches, key=lambda branch: _distance(branch, error))
            return all(self._relax_error(inner, context) for inner in nearest)
        path = list(error.schema_path)
        root: object = context.node
        name = path[1] if len(path) > 1 and path[0] == "$defs" else None
        if name is not None:
            root, path = context.shared[name].schema, path[2:]
        holder = as_object(_descend(root, path[:-1]))
        if not path or holder is None or (path[-1] == "required" and not context.is_whole):
            return False
        is_text = name is None and context.is_text(path[:-1])
        if not widen(cast("dict[str, object]", holder), error, is_text=is_text):
            return False
        if name is None:
            self._is_loosened = True
        else:
            self._relaxed_refs.add(context.shared[name].ref)
        return True


def _distance(branch: Sequence[Any], choice: Any) -> tuple[bool, int]:
    """Sorts a branch of another type last, then by the number of its violations."""
    is_other = any(
        len(error.instance_path) == len(choice.instance_path) and error.kind.name == "type" for error in branch
    )
    return is_other, len(branch)


def _descend(node: object, path: Sequence[object]) -> object:
    for token in path:
        items = as_list(node)
        if items is None:
            node = (as_object(node) or {}).get(str(token))
        else:
            node = items[token] if isinstance(token, int) and token < len(items) else None
    return node


def _shown(error: Any) -> str:
    text = clean_text(str(error.message))
    return text if len(text) <= MAX_FAULT_LENGTH else f"it violates `{error.kind.name}`"
