"""What a definition costs in a list: the bytes that a client is served, whichever library wrote what is stored."""

import json
import re

_ODD_NUMBER = re.compile(rb"0\.0000|[0-9][eE]-?[0-9]")


def served_bytes(definition: bytes) -> int:
    """How many bytes a client is served; there, numbers with an exponent are written otherwise than here."""
    if _ODD_NUMBER.search(definition) is None:
        return len(definition)
    return len(json.dumps(json.loads(definition), ensure_ascii=False, separators=(",", ":")).encode())
