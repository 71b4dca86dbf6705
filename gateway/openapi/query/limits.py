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
SEPARATOR_BYTES = 12
"""Bytes between two strings of an indented list: the comma, the line end and up to ten spaces."""
MAX_PAGE_BYTES = 256 * 1024
"""Bytes of the items of one page, as for pages of `tools/list`; the first item is always included."""
MAX_SHOWN_LENGTH = 300
"""Characters of a description or of a wrong name in a list or refusal."""
MAX_SUGGESTED = 5
"""Names that a refusal suggests; with more, a model guesses instead of listing."""
MAX_NAMES = 100
"""Names of arguments, or tags, of one operation in the outline and the index, outer levels first."""
MAX_INDEXED_LENGTH = 2_000
"""Characters of the description of an operation, and of its arguments, that are indexed; examples follow later."""
MAX_SEARCHED_NODES = 2_000
"""Values of one input schema that are searched for names, outer levels first. Chosen, not measured."""
MAX_SUMMARY_LENGTH = 200
"""Characters of a summary, of which a page lists up to 500."""
MAX_OUTLINED_LENGTH = 4_000
"""Characters of a description in an outline, an eighth of a result; some documents contain whole manuals."""
MAX_OUTLINED_NAME_LENGTH = 200
"""Characters of a tag or of an argument's name in an outline."""
MAX_RESOLVED_NODES = 20_000
"""Values of one result whose references are resolved. A result has 32 KiB, so that more would be cut."""
MAX_RESOLVED_LEVELS = 80
"""Nesting level up to which references are resolved. The JSON readers of clients fail at about 200 levels."""
MAX_UNKNOWN = 5
"""Words of a question that are not indexed and are compared with all indexed words; see `MAX_KNOWN`."""
MAX_KNOWN = 3
"""Indexed words of a question up to which the other words are compared with all indexed words: each of them costs as
much as the rest of a long question, which loses little without them.
"""
MAX_COMPARED = 2_000
"""Edit distances that one question computes. Each takes up to about 50 µs; names of real documents need less than a
tenth of them.
"""
MIN_NEAR_LENGTH = 4
"""Letters from which a word is compared by edit distance; of shorter words, one edit makes another word."""
MIN_TWO_EDITS = 8
"""Letters from which a similar word may have two edits, a quarter of its letters."""
MAX_TEXT_LENGTH = 2_000
"""Characters of a text argument without another limit: names, cursors and HTTP methods."""
MAX_QUERY_LENGTH = 8_000
"""Characters of a question: agents send whole tasks, of up to about 1,000 words."""
MAX_OPERATION_LENGTH = 65_536
"""Characters of an operation or path; longer than the request targets that servers usually accept."""
MAX_OFFSET = 1_000_000
"""Items that a page can skip, more than any list has."""
MAX_CUT_NAME_LENGTH = 2_000
"""Characters of the name of a member in a cut object, which has a pointer beside it; half of `MAX_POINTER_LENGTH`."""
POSTING_BYTES = 9
"""Bytes of one posting: the number of an operation (4), a weight (4), and the bits of its fields (1)."""
WORD_BYTES = 160
"""Bytes of one indexed word, about: the text, its entry in a dictionary, and its start."""
MIN_SUBSTRING_LENGTH = 3
"""Letters from which a word is found inside indexed words; shorter ones are in nearly every word."""
MAX_SUGGESTED_NAME_LENGTH = 200
"""Characters of names whose similarity is computed, because each takes time for each trigram."""
MAX_COMPARED_LENGTH = 40
"""Letters of words whose edit distance is computed; longer names with a slip share most trigrams."""
