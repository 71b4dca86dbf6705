"""Names of arguments that clients take: those of a stored schema, with `_` for each foreign character."""

import re
from collections.abc import Iterable, Mapping

from gateway.domain.listed.limits import MAX_ARGUMENT_NAME_LENGTH

PLAIN_ARGUMENT = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Names that every client of `client_limits` takes beside each other at the root of a schema."""

_FOREIGN = re.compile(r"[^a-zA-Z0-9_.-]")


def renamed_arguments(names: Iterable[str]) -> Mapping[str, str]:
    """Return the listed name of each stored name that some client refuses; a name that is taken gets a number."""
    stored = [*names]
    taken, renamed = set(stored), dict[str, str]()
    numbers: dict[str, int] = {}  # lower numbers of the same name stay taken, so each is tried once
    for name in stored:
        if PLAIN_ARGUMENT.fullmatch(name) is None:
            wanted = _FOREIGN.sub("_", name)[:MAX_ARGUMENT_NAME_LENGTH] or "_"
            number = numbers.get(wanted, 1)
            listed = wanted if number == 1 else _numbered(wanted, number)
            while listed in taken:
                number += 1
                listed = _numbered(wanted, number)
            numbers[wanted] = number
            taken.add(listed)
            renamed[name] = listed
    return renamed


def _numbered(wanted: str, number: int) -> str:
    return f"{wanted[: MAX_ARGUMENT_NAME_LENGTH - len(str(number)) - 1]}_{number}"


def restore_arguments(arguments: Mapping[str, object], renamed: Mapping[str, str]) -> Mapping[str, object]:
    """Return arguments with their stored names, given either name; `renamed` has the listed name of each stored one.

    An argument that is given by both names keeps both, and the validation refuses the one that the schema lacks.
    """
    stored = {listed: name for name, listed in renamed.items() if name not in arguments}
    return {stored.get(name, name): value for name, value in arguments.items()}


def describe_original(name: str, description: object) -> str:
    """Return the description of a renamed argument, which begins with its original name."""
    return f"`{name}`: {description}" if isinstance(description, str) and description else f"`{name}`"
