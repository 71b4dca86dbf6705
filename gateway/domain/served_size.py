"""Listed size of a definition: the number of bytes sent to a client."""

import json
import re

_ODD_NUMBER = re.compile(rb"0\.0000|[0-9][eE]-?[0-9]")


def served_bytes(definition: bytes) -> int:
    """Return the number of bytes sent to a client.

    The stored form may encode floats with an exponent differently from the JSON that clients receive."""
    if _ODD_NUMBER.search(definition) is None:
        return len(definition)
    return len(json.dumps(json.loads(definition), ensure_ascii=False, separators=(",", ":")).encode())
