"""The indexes of one document for the query tools, and one caller's view of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from weakref import WeakKeyDictionary

from gateway.domain.listed.names import UNCHANGED, ListedNames
from gateway.domain.queries import Queried
from gateway.domain.tools import Tool
from gateway.openapi.query.outline import Outline, OutlinedOperation, SchemaEntry
from gateway.openapi.query.word_index import WordIndex


class DocumentIndex:
    """An outline with indexes that are built on first use; shared by all callers of the source."""

    def __init__(self, outline: Outline, size: int = 0) -> None:
        self.outline = outline
        self._size = size
        self._views: WeakKeyDictionary[Queried, ApiView] = WeakKeyDictionary()

    def view(self, queried: Queried) -> "ApiView":
        """Return the part of the source that one caller sees.

        Views are kept with the index, not with the caller's lists: these would keep an index that a cache has dropped.
        """
        found = self._views.get(queried)
        if found is None:
            found = self._views[queried] = ApiView(
                source=queried.source.name,
                api=self,
                tools=queried.tools,
                is_whole=queried.is_whole,
                names=queried.names,
            )
        return found

    @property
    def size(self) -> int:
        """The approximate size in bytes: the `size` of the outline, and the word index once it is built."""
        return self._size + (self.words.size if "words" in vars(self) else 0)

    @cached_property
    def endpoints(self) -> Mapping[str, OutlinedOperation]:
        """The operations by identity."""
        return {endpoint.identity: endpoint for endpoint in self.outline.endpoints}

    @cached_property
    def schemas(self) -> Mapping[str, SchemaEntry]:
        """The schemas by name."""
        return {entry.name: entry for entry in self.outline.schemas}

    @cached_property
    def words(self) -> WordIndex:
        """The index of the words of all operations."""
        return WordIndex(self.outline.endpoints, self.outline.title)

    @cached_property
    def direct_dependants(self) -> Mapping[str, Sequence[str]]:
        """The schemas that refer to each schema directly."""
        found: dict[str, list[str]] = defaultdict(list)
        for entry in self.outline.schemas:
            for link in entry.links:
                found[link].append(entry.name)
        return found

    def dependencies(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names of the schemas that these schemas reference, directly or indirectly."""
        return _closure(names, lambda name: self.schemas[name].links if name in self.schemas else ())

    def dependants(self, name: str) -> frozenset[str]:
        """Return the names of the schemas that reference this schema, directly or indirectly."""
        return _closure([name], lambda used: self.direct_dependants.get(used, ()))


class ApiView:
    """The part of a source that one caller sees; `tools` contains the caller's tools by operation identity.

    If the caller sees the entire source (`is_whole`), operations that could not be compiled are included.
    """

    def __init__(
        self,
        *,
        source: str,
        api: DocumentIndex,
        tools: Mapping[str, Tool],
        is_whole: bool,
        names: ListedNames = UNCHANGED,
    ) -> None:
        self.source = source
        self.api = api
        self.tools = tools
        self.is_whole = is_whole
        self._names = names

    def shows(self, endpoint: OutlinedOperation) -> bool:
        """True if the caller sees this operation."""
        return endpoint.identity in self.tools or (self.is_whole and not endpoint.is_callable)

    @cached_property
    def shown(self) -> bytes:
        """A flag for each operation of the document: 1 if the caller sees it."""
        return bytes(map(self.shows, self.api.outline.endpoints))

    @property
    def endpoints(self) -> Sequence[OutlinedOperation]:
        """The visible operations, in the order of the document."""
        return [*compress(self.api.outline.endpoints, self.shown)]

    @property
    def schemas(self) -> Sequence[SchemaEntry]:
        """The visible schemas: all if the source is entirely visible, otherwise the schemas that visible operations
        reference.
        """
        if self.is_whole:
            return self.api.outline.schemas
        first = {name for endpoint in self.endpoints for name in endpoint.schemas}
        reached = first | self.api.dependencies(first)
        return [entry for entry in self.api.outline.schemas if entry.name in reached]

    def find(self, key: str) -> Sequence[OutlinedOperation]:
        """Return the visible operations with this `METHOD path`; if there is none, this operationId or tool name."""
        method, _, path = key.strip().partition(" ")
        for identity in (key, f"{method.upper()} {path.strip()}"):
            found = self.api.endpoints.get(identity)
            if found is not None and self.shows(found):
                return [found]  # an identity is unambiguous, even if an operationId equals it
        return [one for one in self.endpoints if key == one.operation_id or self.is_named(one, key)]

    def tool_name(self, endpoint: OutlinedOperation) -> str | None:
        """Return the listed name of the operation's tool; None if the caller sees no tool for it."""
        name = self._stored_name(endpoint)
        return None if name is None else self._names.listed(name)

    def is_named(self, endpoint: OutlinedOperation, key: str) -> bool:
        """True if this is a name of the operation's tool, stored or listed."""
        name = self._stored_name(endpoint)
        return name is not None and name in (key, self._names.stored(key))

    def _stored_name(self, endpoint: OutlinedOperation) -> str | None:
        tool = self.tools.get(endpoint.identity)
        return None if tool is None else tool.name


def _closure(names: Iterable[str], step: Callable[[str], Iterable[str]]) -> frozenset[str]:
    found: set[str] = set()
    waiting = [link for name in names for link in step(name)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += step(name)
    return frozenset(found)
