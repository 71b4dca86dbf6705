"""Listed size of a definition: the bytes sent to a client, whichever library encoded the stored form."""

import json
import re

_ODD_NUMBER = re.compile(rb"0\.0000|[0-9][eE]-?[0-9]")


def served_bytes(definition: bytes) -> int:
    """Return the number of bytes sent to a client; numbers with an exponent are encoded differently there."""
    if _ODD_NUMBER.search(definition) is None:
        return len(definition)
    return len(json.dumps(json.loads(definition), ensure_ascii=False, separators=(",", ":")).encode())
