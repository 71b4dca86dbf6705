"""Limits of a call: texts, values and results that are kept or shown."""

MAX_NESTED_CALLS = 8
"""The maximum depth of nested calls; the outermost call has depth 0."""
MAX_CALLS = 250
"""The maximum number of calls inside one call, at all depths together."""
MAX_RESULT_BYTES = 10 * 1024 * 1024
"""The size limit of one result, in bytes of JSON."""
ITEM_BYTES = 8
"""Bytes of JSON of a member or element beside its text, about."""
MAX_TEXT_BYTES = 256 * 1024
"""The size limit of text or JSON, in bytes; a JSON result contains the body twice, as text and as structure."""
MAX_BINARY_BYTES = 1024 * 1024
"""The size limit of binary content, in bytes; it applies only if the complete body has been stored for its caller."""
MAX_SCANNED_MEMBERS = 10_000
"""Members of an object with very many commas that are looked at; each takes about 3 µs."""
MAX_SPLIT_BYTES = 128 * 1024 * 1024
"""Limit on the bytes that are split, which each level of nesting does again."""
MAX_WAITING = 512
"""Maximum number of calls that wait on this replica; one tenant may use a quarter. Further calls do not wait."""
APPROVAL_POLL_S = 5.0
"""Seconds between looks at an approval whose event may be lost."""
FINISH_S = 5.0
"""Seconds for the outcome of an approved call to be stored after its client has gone; the claim expires without it."""

MAX_COMPLETION_LENGTH = 4096
"""Characters of one value of a completion; a client shows it in a menu."""

MAX_PROMPT_ARGUMENT_LENGTH = 64 * 1024
"""Characters of one argument of a prompt, as many as a template has."""
MAX_EMBEDDED = 16
"""Resources that one prompt embeds; each is a call of its own."""

MAX_DOCUMENTS = 4
"""Limit on the summaries of one result; further large text blocks are unchanged."""
MAX_OUTLINE_BYTES = 4096
"""Bytes of an outline, about 1,000 tokens: a summary has to be small."""
MAX_PREVIEW_BYTES = 4096
"""Bytes of the shown start of a result, for the same reason."""
MAX_PREVIEW_PARTS = 50_000
"""Up to this number of parts, the preview shows small members of the whole document; above it, the truncated start."""

MAX_WHOLE_BYTES = 10 * 1024 * 1024
"""Bytes of a text that is returned complete, as many as a result may have."""
MAX_DECODED_BYTES = 4 * MAX_TEXT_BYTES + 64
"""Bytes of a text that are decoded before it is cut: a character has up to four."""
CHECKED_BYTES = 256 * 1024
"""Bytes that are checked as UTF-8 in one step, so that no second copy of a whole text is in memory."""
MAX_TYPE_LENGTH = 256
"""Characters of a content type that a result shows; an upstream may send one of many kilobytes."""

MAX_STORED_DOCUMENTS_BYTES = 20 * 1024 * 1024
"""Limit on the stored bytes of one result: an owner has 32 MiB, so the last document does not evict the first."""

MAX_FACT_LENGTH = 500
"""Characters of one fact; some contain texts of the caller or of the upstream's document."""
MAX_COUNTED_BYTES = 256 * 1024
"""Bytes of a JSON body whose lists are counted; it is parsed on the event loop."""
MAX_SEARCHED_DESCRIPTION_LENGTH = 8_000
"""Characters of a description that are searched for sentences about reversibility."""
MAX_FACTS = 20
"""Facts about one call; an approver does not read more, and the caller chooses their number."""
MAX_LISTS = 5
"""Lists of a body that are counted, so that other facts have room."""
MAX_STATEMENTS = 5
"""Sentences of a definition that are quoted, so that other facts have room."""

MIN_REPLACED_BYTES = 256
"""Bytes of JSON below which a sentence saves nothing."""
MAX_DESCRIBED_BYTES = 256 * 1024
"""Bytes of JSON whose members are named; larger JSON is described by its size, because it is parsed on the event loop.
"""
MAX_DESCRIBED_PARTS = 20_000
"""Commas of JSON whose members are named, for the same reason."""
MAX_NAMED = 8
"""Members that the sentence names; it states the number of the others."""
MAX_NAME_LENGTH = 40
"""Characters of a member's name in the sentence."""

MAX_PARTS = 300_000
"""Commas or colons of JSON that is read completely; of JSON with more, only the kept part is read."""
COUNTED_BYTES = 1024 * 1024
"""Bytes that are counted at once: the start shows most JSON of very many parts."""
MAX_NOTES = 10
"""Notes on omitted parts; a further note states the number of the others."""
MAX_TRUNCATED_DEPTH = 48
"""Levels at which parts are shortened one by one; deeper ones are cut as text, because the truncation is recursive."""
MIN_CUT_BYTES = 16
"""Bytes of room below which a container is not shortened but omitted: a name and a value need about as many."""

MAX_ERROR_BODY_LENGTH = 2048
"""Characters of an upstream's error response in a result: enough for a JSON problem, while a page of HTML is cut."""
MAX_HINT_LENGTH = 64
"""Characters of `Retry-After`; a date has 29."""

MAX_HEADER_LENGTH = 1024
"""Characters of one shown header (decision 53)."""
MAX_HEAD_LENGTH = 8 * 1024
"""Characters of all shown headers together (decision 53); an upstream may send a head of 64 KiB."""
