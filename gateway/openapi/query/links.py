"""The targets of local references in a document: named schemas, and other referenced parts, which an outline stores."""

from collections.abc import Mapping, Sequence

from gateway.domain.json_access import as_list, as_object, point
from gateway.openapi.document.json_access import Unusable
from gateway.openapi.document.references import References, ref_tokens


class Links:
    """The local references of one document, each followed once; external references are ignored."""

    def __init__(self, references: References, section: Sequence[str]) -> None:
        self._references = references
        self._section = list(section)
        self._targets: dict[str, object] = {}
        self._direct: dict[str, Sequence[str]] = {}

    @property
    def targets(self) -> Mapping[str, object]:
        """The referenced parts by pointer, except complete named schemas."""
        return self._targets

    def schemas_of(self, node: object) -> tuple[str, ...]:
        """Return the sorted names of the schemas that a part references, directly or through parts without a name."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = list(find_refs(node))
        while waiting:
            pointer = self._references.canonical(waiting.pop())
            if pointer in seen:
                continue
            seen.add(pointer)
            name = self._name(pointer)
            if name is not None:
                found.add(name)
            if name is None or pointer.count("/") > len(self._section) + 1:
                waiting += self._refs_behind(pointer)
        return tuple(sorted(found))

    def _name(self, pointer: str) -> str | None:
        """The name of the schema that is or contains the pointer's target; None if there is none."""
        tokens = ref_tokens(pointer)
        depth = len(self._section)
        if tokens[:depth] != self._section or len(tokens) <= depth:
            return None
        return tokens[depth].encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")

    def _refs_behind(self, pointer: str) -> Sequence[str]:
        if pointer not in self._direct:
            try:
                target = self._references.target(pointer)
            except Unusable:
                self._direct[pointer] = ()
            else:
                self._targets[pointer] = target
                self._direct[pointer] = find_refs(target)
        return self._direct[pointer]


def find_refs(node: object) -> Sequence[str]:
    """Return every local reference in a value, each once."""
    found: dict[str, None] = {}
    stack = [node]
    while stack:
        value = stack.pop()
        mapping = as_object(value)
        if mapping is not None:
            ref = mapping.get("$ref")
            if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
                found[ref] = None
            stack += mapping.values()
        stack += as_list(value) or ()
    return tuple(found)


def canonical_pointer(ref: str) -> str:
    """Return the canonical spelling, equal for all spellings of the same pointer."""
    return "#" + point(*ref_tokens(ref))
