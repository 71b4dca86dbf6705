"""Limits and searched fields of the query tools, so that their definitions can be imported without their code."""

from collections.abc import Mapping
from typing import Final

DEFAULT_LIMIT = 50
MAX_PER_PAGE = 500
MAX_DEPTH = 20
MAX_ANSWER_BYTES = 32 * 1024
MAX_POINTER_LENGTH = 4_000
"""Limit on the characters of a pointer. A `$cut` object omits a longer pointer."""

FIELDS: Final[Mapping[str, float]] = {
    "path": 1.0,
    "operationId": 1.0,
    "summary": 1.0,
    "tags": 1.5,
    "parameters": 1.0,
    "description": 1.0,
}
"""The searched fields, with the weight of a word in each."""
