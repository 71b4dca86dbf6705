"""Bodies of declared kinds."""

from collections.abc import Mapping
from typing import Any

from gateway.kinds.kind import Kind


def with_key(kind: Kind[Any], members: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The members of an object with another key, such as another name, if its key is not the id."""
    if kind.keyed == "id":
        return dict(members)
    if not kind.key_in:
        return {**members, kind.keyed: key}
    holder, part = kind.key_in
    return {**members, holder: {**members[holder], part: key}}
