"""The selection of operations that become tools: by the tenant's rules, then by the hints of the document."""

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate

from gateway.domain.sources import OperationRule
from gateway.openapi.operation.operations import Operation
from gateway.openapi.operation.tool_definition import list_tags

_Test = Callable[[Operation], bool]


class OperationSelector:
    """The rules of one import; records which rules matched, and the number of selected operations."""

    def __init__(self, include: Sequence[OperationRule], exclude: Sequence[OperationRule]) -> None:
        self._include = [_compile_rule(rule) for rule in include]
        self._exclude = [_compile_rule(rule) for rule in exclude]
        self._matched: set[tuple[str, int]] = set()
        self._chosen = 0
        self._refused = 0

    def refuse(self, operation: Operation) -> str | None:
        """Return the reason why the operation is not selected; None if it is selected.

        An include rule overrides a hint of the document; an exclude rule overrides both.
        """
        included = self._matching("include", self._include, operation)
        excluded = self._matching("exclude", self._exclude, operation)
        reason = None
        if excluded:  # guard: chosen-excluded
            reason = f"exclude rule {excluded[0]} matches"
        elif self._include and not included:
            reason = "no include rule matches"
        elif not included and operation.hints.refused_by is not None:
            reason = f"{operation.hints.refused_by} excludes it"
        self._chosen += reason is None
        self._refused += reason is not None
        return None if reason is None else f"not selected: {reason}"

    @property
    def has_exclusions(self) -> bool:
        """True if some operation was not selected."""
        return self._refused > 0

    def warnings(self) -> Iterator[str]:
        """Yield warnings about rules without a match and an empty selection; call it after all `refuse` calls."""
        for word, rules in (("include", self._include), ("exclude", self._exclude)):
            for number in range(1, len(rules) + 1):
                if (word, number) not in self._matched:
                    yield f"{word} rule {number} matches no operation of the document"
        if self._refused and not self._chosen:
            yield "no operation of the document is selected"

    def _matching(self, word: str, rules: Sequence[_Test], operation: Operation) -> Sequence[int]:
        found = [number for number, matches in enumerate(rules, 1) if matches(operation)]
        self._matched.update((word, number) for number in found)
        return found


def _compile_rule(rule: OperationRule) -> _Test:
    """Compiles a rule to a predicate: True if every member that is set matches.

    `fnmatch.translate` makes atomic groups, so no `*` of a pattern backtracks into another.
    """
    names = [re.compile(translate(pattern)) for pattern in rule.operation_ids]
    paths = [re.compile(translate(pattern)) for pattern in rule.paths]
    methods = frozenset(method.upper() for method in rule.methods)
    tags = frozenset(rule.tags)

    def matches(operation: Operation) -> bool:
        return (
            (not methods or operation.method.upper() in methods)
            and (not names or _any(names, operation.operation_id))
            and (not paths or _any(paths, operation.path))
            and (not tags or not tags.isdisjoint(list_tags(operation)))
        )

    return matches


def _any(patterns: Sequence[re.Pattern[str]], text: str | None) -> bool:
    return text is not None and any(pattern.match(text) is not None for pattern in patterns)
