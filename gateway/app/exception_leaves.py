"""Exceptions inside nested exception groups."""

from typing import cast


def first_leaf(error: BaseException, *preferred: type[BaseException]) -> BaseException:
    """Return the first exception inside nested exception groups; the preferred types take precedence."""
    leaves = _leaves(error)
    return next((leaf for leaf in leaves if isinstance(leaf, preferred)), leaves[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
