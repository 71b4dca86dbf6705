"""Name conflicts of an import, and a prefix that avoids them."""

import re
from collections.abc import Collection, Mapping
from itertools import count

from gateway.catalog.sources.limits import MAX_CONFLICTS_SHOWN, MAX_PREFIX_LENGTH
from gateway.domain.sources import Compilation
from gateway.errors import NameConflict, NameTaken
from gateway.openapi.operation.names import RESERVED

_BUILTIN = "builtin"
_FOREIGN = re.compile(r"[^A-Za-z0-9]+")


def refuse_taken(compilation: Compilation, owners: Mapping[str, str], *, source: str) -> None:
    """Refuse an import with tool names that are taken.

    Raises:
        NameTaken: some names are taken; the error contains a prefix that avoids every conflict.
    """
    conflicts = [
        NameConflict(name=name, owner=_BUILTIN if name in RESERVED else owners[name])
        for name in sorted(operation.tool for operation in compilation.operations)
        if name in RESERVED or name in owners
    ]
    if not conflicts:
        return
    prefix = find_prefix(source, RESERVED.union(owners))
    words = "1 tool name is" if len(conflicts) == 1 else f"{len(conflicts)} tool names are"
    raise NameTaken(
        f"{words} taken, first {conflicts[0].name} by {conflicts[0].owner}; import under a prefix",
        conflicts=conflicts[:MAX_CONFLICTS_SHOWN],
        suggested_prefix=prefix,
    )


def find_prefix(source: str, taken: Collection[str]) -> str:
    """A prefix derived from the source's name. No taken name begins with it, so prefixed names cannot conflict."""
    stem = _FOREIGN.sub("_", source).strip("_")[:MAX_PREFIX_LENGTH] or "api"
    candidates = (stem if number == 1 else f"{stem}_{number}" for number in count(1))
    return next(prefix for prefix in candidates if not any(name.startswith(f"{prefix}_") for name in taken))
