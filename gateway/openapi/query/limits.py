"""Limits and searched fields of the query tools, so that their definitions can be imported without their code."""

from collections.abc import Mapping
from typing import Final

DEFAULT_LIMIT = 50
"""Operations or schemas of a page without `limit`."""
MAX_PER_PAGE = 500
"""The highest `limit` of a page."""
MAX_DEPTH = 20
"""References that are followed within each other; deeper ones stay references."""
MAX_ANSWER_BYTES = 32 * 1024
"""Bytes of JSON of one result, about 8,000 tokens; a longer one is cut, with a pointer to each cut part."""
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

MAX_OUTLINE_BYTES = 48 * 1024 * 1024
"""Limit on the JSON bytes of one outline. Once it is reached, operations, schemas and targets have no content."""
MAX_WORDS = 256
"""Words of a question that are looked up, the rarest first: a question of 8,000 characters has up to about 1,000."""
WHOLE_BYTES = 600
"""Members of at most this many bytes are shown completely; if not all fit, the last ones are removed."""
MAX_POSTINGS = 300_000
"""Limit on the (word, operation) pairs indexed per document. Descriptions are indexed last, up to this limit."""
