"""Limits of definitions: recorded changes, reported faults, JSON values, pointers and patterns."""

MAX_SIDE_BYTES = 32_000
"""Limit on the JSON bytes of each side of an entry; a page of 200 entries stays below 13 MB."""
MAX_RECORDED_TEXT_LENGTH = 1_000
"""Limit on the characters of a recorded text; the rest is a fingerprint."""
MAX_RECORDED_DEPTH = 24
"""Levels of a changed object; deeper values are a fingerprint, so that the recursion ends. Chosen, not measured."""

MAX_FAULTS = 20
"""Faults of one object that are reported: enough to correct it in one go, and the error stays readable."""
MAX_FAULT_POINTER_LENGTH = 1_000
"""Characters of the pointer of a fault. Member names are the sender's, and an error must not return all of them."""
MAX_FIELD_LENGTH = 200
"""Characters of the field's name in the message of an error and of a line in the log; it contains member names of the
sender.
"""

MAX_JSON_DEPTH = 128
"""Levels of a value. The copy is recursive; Python's recursion limit of 1,000 frames is far above 128 levels."""
MAX_JSON_VALUES = 200_000
"""Values that are copied; 200,000 take about 0.2 s. A larger value would block the event loop for longer."""
MIN_INTEGER = -(2**63)
"""The lowest integer of a JSON value: `orjson` and `msgspec` write 64 bits, signed for negative numbers."""
MAX_INTEGER = 2**64 - 1
"""The highest integer of a JSON value: `orjson` and `msgspec` write 64 bits, unsigned for positive numbers."""

MAX_POINTER_LENGTH = 512
"""Characters of a declared pointer or path. Chosen, not measured."""
MAX_PATHS = 100
"""Paths of one projection. The work is linear in their number for each part of a result."""

MAX_COMPILED_PATTERN_BYTES = 256 * 1024
"""Memory in bytes of one compiled regular expression. A repetition such as `(a{999}){99}` compiles to a thousand times
its text.
"""
