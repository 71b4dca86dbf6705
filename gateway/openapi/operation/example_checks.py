"""Checks of a document's values against the listed schemas, and what they relax in the schemas (decision 49).

An example is evidence of what the API accepts. A keyword that contradicts an example is relaxed if a rule covers it:
limits, formats, patterns and closed lists of values are dropped, and a type is widened by null or another scalar. Any
other contradiction is a note; it takes nothing from the tool. A default that contradicts a reference beside it is
dropped. Sizes, numbers and visits are limited before a check begins.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal, cast

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
"""Rounds of relaxing one example: each removes all faults that a validator reports, and may uncover further ones."""
_CHOICES = frozenset(("anyOf", "oneOf"))


_Outcome = Literal["accepted", "relaxed", "refused", "unchecked"]
_FITTING = frozenset(("accepted", "relaxed"))


class ExampleVerdict(msgspec.Struct, frozen=True):
    """The outcome of one example: its value in the form that fits, or the fault of a refused one."""

    outcome: _Outcome
    value: object = None
    fault: str = ""


_UNCHECKED = ExampleVerdict("unchecked")


@dataclass(slots=True)
class _Relaxed:
    """Schemas that the examples of one schema have relaxed: itself, and shared ones by reference."""

    is_loosened: bool = False
    refs: set[str] = field(default_factory=set[str])


class _Budget:
    """The examples of one document by outcome, and the work that further checks may cost."""

    def __init__(self) -> None:
        self.counts: dict[_Outcome, int] = {"accepted": 0, "relaxed": 0, "refused": 0, "unchecked": 0}
        self.visits = MAX_TOTAL_VISITS
        self.compiled_bytes = MAX_COMPILED_BYTES

    @property
    def is_spent(self) -> bool:
        """True if no further schema is compiled."""
        return self.visits < 0 or self.compiled_bytes < 0

    @property
    def is_full(self) -> bool:
        """True if the document has no further example to check."""
        return sum(self.counts.values()) >= MAX_EXAMPLES


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
    relaxed: _Relaxed
    """Notes what an example relaxes."""

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
        self._budget = _Budget()

    @property
    def counts(self) -> ExampleCounts:
        """The number of examples with each result."""
        return ExampleCounts(**self._budget.counts)

    def settle(
        self, arguments: Sequence[Argument], needed: Sequence[Component]
    ) -> tuple[Sequence[Argument], Sequence[Component]]:
        """Check the examples of these arguments and of the shared schemas that they need; relax contradicted keywords.

        Each shared schema is checked once. The results contain the relaxed schemas.
        """
        fresh = [part for part in needed if part.translated.has_values and part.ref not in self._settled]
        if not fresh and not any(argument.translated.has_values for argument in arguments):
            return arguments, needed
        # An example of a whole body shows which members may be absent; one of a part may be a sketch.
        whole = {ref for argument in arguments for ref in argument.translated.in_place}
        relaxed_refs = set[str]()
        for component in fresh:
            self._settled.add(component.ref)
            where = component.ref.removeprefix("#")
            relaxed = self._check_schema(component.translated, where, is_whole=component.ref in whole)
            relaxed_refs |= relaxed.refs
            self._components.settle(component.ref, is_loosened=relaxed.is_loosened)
        for component in fresh:  # after all examples, because they relax schemas
            if self._drop_defaults(component.translated, component.ref.removeprefix("#")):
                self._components.settle(component.ref, is_loosened=False)
        for argument in arguments:
            relaxed_refs |= self._check_argument(argument)
        # Shared schemas first: an example of an argument is checked against their relaxed form.
        settled = [self._loosened(argument) for argument in arguments]
        for ref in relaxed_refs:
            self._components.settle(ref, is_loosened=True)
        return settled, self._components.closure(link for item in settled for link in item.translated.links)

    def refusals(self, arguments: Sequence[Argument], needed: Sequence[Component]) -> Iterator[str]:
        """Yield the faults of refused examples of these arguments and shared schemas, once they are settled."""
        for where in (*(item.where for item in arguments), *(part.ref.removeprefix("#") for part in needed)):
            yield from self._refusals.get(where, ())

    def _check_argument(self, argument: Argument) -> AbstractSet[str]:
        """Check the examples of an argument; return the references of the shared schemas that they relaxed."""
        translated = argument.translated
        if not translated.has_values or argument.where in self._arguments:  # several operations may share a parameter
            return frozenset()
        relaxed = self._check_schema(translated, argument.where, texts=argument.texts)
        self._arguments[argument.where] = relaxed.is_loosened
        self._drop_defaults(translated, argument.where)
        return relaxed.refs

    def _loosened(self, argument: Argument) -> Argument:
        """Return the argument, marked if its schema was relaxed."""
        translated = argument.translated
        if translated.is_loosened or not self._arguments.get(argument.where, False):
            return argument
        return replace(argument, translated=replace(translated, is_loosened=True))

    def _check_schema(
        self, translated: Translated, where: str, *, texts: frozenset[Path] = frozenset(), is_whole: bool = True
    ) -> _Relaxed:
        """Check every schema with examples inside one schema; return what they relaxed."""
        relaxed = _Relaxed()
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
                relaxed=relaxed,
            )
            fitting: list[object] = []
            for value in cast("list[object]", node.pop("examples")):
                verdict = self._judge(value, context)
                self._budget.counts[verdict.outcome] += 1
                if verdict.outcome == "refused":
                    position = self._positions.find(where, path, value)
                    refused[f"the example at {position} does not fit its schema: {verdict.fault}"] = None
                elif verdict.outcome in _FITTING:
                    fitting.append(verdict.value)
            fitting += cast("list[object]", node.pop("examples", []))  # values of an `enum` that was dropped
            if listed := () if self._is_output else listed_examples(fitting, node, is_whole=not path):
                node["examples"] = listed
        if refused and self._is_output:
            self._refusals[where] = tuple(refused)
        elif refused:
            for fault in refused:
                self._warnings.note("", fault)
        return relaxed

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
        if shared is None or self._budget.visits < 0:
            return False
        if not self._values.affords(node, sum(len(part.text) for part in shared)):
            return False
        definitions = {part.name: part.schema for part in shared}
        visits, _ = count_visits(node, node["default"], definitions)
        self._budget.visits -= visits
        if visits > MAX_VISITS:  # guard: linked-defaults-bounded
            return False
        check = self._values.validator({**node, "$defs": definitions})
        return check is not None and not check.is_valid(node["default"])

    def _judge(self, value: object, context: _SchemaContext) -> ExampleVerdict:
        """Compare an example with its schema, which it may relax."""
        if self._is_output and context.is_whole:  # the listed root is of type object, also if the document has no type
            value = read_text(value)
            if as_object(value) is None:
                return ExampleVerdict("refused", fault=f"{type_of(value)} is not of type object")
        if is_plain(context.node) and has_type(value, types_of(context.node)):
            return ExampleVerdict("accepted", value)
        check = self._check(value, context)
        if check is None:
            return _UNCHECKED
        if check.is_valid(value):
            return ExampleVerdict("accepted", value)
        if not context.is_text():
            read = read_text(value)
            if read is not value and (other := self._check(read, context)) is not None and other.is_valid(read):
                return ExampleVerdict("accepted", read)
        return self._relax(value, context, check)

    def _check(self, value: object, context: _SchemaContext) -> Any:
        """Compile the schema for a check of the value; None if the check would exceed a limit."""
        budget = self._budget
        if budget.is_spent:  # before the visits are counted
            return None
        size = size_of(value)
        if size is None or size > MAX_EXAMPLE_BYTES or budget.is_full:
            return None
        definitions: dict[str, object] = {}
        if not is_leaf(context.node):
            visits, reached = count_visits(context.node, value, context.definitions)
            budget.visits -= visits
            if visits > MAX_VISITS or visits * size > MAX_COPIED_BYTES:
                return None
            budget.compiled_bytes -= sum(len(context.shared[name].text) for name in reached & context.shared.keys())
            definitions = {name: part if name in reached else True for name, part in context.definitions.items()}
        if budget.is_spent:
            return None
        if is_leaf(context.node):
            return self._values.validator(context.node)
        return compile_schema({**context.node, "$defs": definitions})

    def _relax(self, value: object, context: _SchemaContext, check: Any) -> ExampleVerdict:
        """Relax the schemas until the value fits. They stay relaxed up to the first fault that no rule covers."""
        for _ in range(_ROUNDS):
            errors = list(check.iter_errors(value))
            if not errors:
                return ExampleVerdict("relaxed", value)
            for error in errors:
                if not self._relax_error(error, context):
                    return ExampleVerdict("refused", fault=_shown(error))
            check = self._check(value, context)
            if check is None:
                return _UNCHECKED
        return ExampleVerdict("refused", fault="it has too many violations")

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
            context.relaxed.is_loosened = True
        else:
            context.relaxed.refs.add(context.shared[name].ref)
        return True


def _distance(branch: Sequence[Any], choice: Any) -> tuple[bool, int]:
    """Sort key of a branch of a choice: branches of the value's type first, then the fewest violations."""
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
