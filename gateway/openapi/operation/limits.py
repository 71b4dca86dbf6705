"""Limits of the tools of operations: their names, texts and schemas, and the checks of examples."""

MAX_MEDIA_TYPES = 12
"""Media types among which a caller can choose; each is a branch of the schema of `body`."""
MAX_OPTIONAL_HEADERS = 3
"""Optional credential headers with every combination: three give eight alternatives for each security requirement."""
MAX_SHOWN_URL_LENGTH = 500
"""Characters of an authorization URL in a suggested command; a longer one is replaced by the word URL."""
MAX_SHOWN_SCOPES = 20
"""Scopes in a suggested command. Some schemes declare hundreds, and the administrator grants few of them."""
MAX_DESCRIPTION_LENGTH = 2_000
"""Characters of a tool's description, about 500 tokens of the context of each model that lists it."""
MAX_TITLE_LENGTH = 200
"""Characters of a tool's title, which clients show in one line."""
MAX_RETURNS_LENGTH = 200
"""Characters of the line about the result; the description has room for ten such lines."""
MAX_NAMED_MEMBERS = 8
"""Names of arguments, tags or properties in one generated sentence; more are counted."""
MAX_NAMED_LENGTH = 40
"""Characters of each name in a generated sentence."""
MAX_DESCRIBED_SCHEMAS = 20
"""Schemas of `allOf` whose properties the line about the result names; it shows eight of them."""
MAX_EXAMPLES = 20_000
"""Examples that are checked in one document (decision 49); documents with more repeat the same ones."""
MAX_TOTAL_VISITS = 3_000_000
"""Visits of schemas to values in the checks of one document (decision 49), which bound the worker's CPU time."""
MAX_COMPILED_BYTES = 32 * 1024**2
"""Bytes of shared schemas that are compiled for the examples of one document, which bound the worker's CPU time."""
MAX_COPIED_BYTES = 16 * 1024**2
"""Visits times bytes of an example, above which its violations are not collected: each may copy the example."""
MAX_FAULT_LENGTH = 200
"""Characters of the validator's text about an example; a longer one contains the value, so only the keyword is shown.
"""
MAX_RANKED_POSITIONS = 100
"""Positions of one value that are compared by distance; an enumeration may use the same value at thousands."""
MAX_POSITION_VISITS = 500_000
"""Values that are searched in one document; further positions are those of the compiled schema."""
MAX_POSITION_LENGTH = 500
"""Characters of a position in a report; paths with long names are cut."""
MAX_FILE_DEPTH = 6
"""Levels of lists and branches that are searched for files; the number of paths can double at each level."""
MAX_REWRITTEN = 5_000
"""Schemas that are rewritten around files, as many as one tool may have: they are no longer shared."""
MAX_FORM_SCHEMAS = 200
"""Schemas of one form whose properties are united, and members of a multipart list with an encoding of their own."""
MAX_FORM_DEPTH = 3
"""Levels of forms and multipart bodies inside fields; OpenAPI 3.2 nests encodings without a limit."""
MAX_INNER_FIELDS = 1_000
"""Fields of all inner forms of one body, because each level can repeat the same shared schema."""
TOOL_BYTES = 16_000
"""Bytes of one tool in a list, about 4,000 tokens; a larger tool is shortened (decision 50)."""
COMPACT_TOOL_BYTES = 6_000
"""Bytes of a compact tool, about 1,500 tokens, for a list that is too large in total (decision 50)."""
LIST_BYTES = 2_000_000
"""Bytes of a source's list, which a replica keeps in memory; beyond it, shortened tools become compact, those that save
most first (decision 50).
"""
STUB_BYTES = 40
"""Bytes reserved for each stub: a type, and `…` as its description."""
MAX_STUB_REQUIRED = 20
"""Required names of a stub. A caller must know them, and more would exceed the size of what they replace."""
MAX_KEPT_VALUES = 30
"""Values of an `enum` below which it is kept in deep levels; longer lists are most of the bytes of a schema."""
MAX_ACCEPTED = 5
"""Media types in an Accept header, besides `*/*`; servers choose among the first ones."""
MAX_NAME_LENGTH = 64
"""Characters of the name of a tool or argument: APIs of model providers accept at most 64."""
MAX_PREFIX_LENGTH = 40
"""Characters of the prefix of a source's tools, so that 24 are left for the operation."""
MAX_OPERATIONS = 5_000
"""Operations of one document: four times those of GitHub's document, which takes 0.75 s of the worker's CPU time."""
MAX_OUTPUT_SCHEMA_BYTES = 32 * 1024
"""Bytes of an output schema; a larger one is not listed, because clients compile it and a model does not need it."""
MAX_OUTPUT_DEPTH = 8
"""Levels of references, `allOf` and branches in which a response must prove to be an object."""
MAX_OUTPUT_WARNINGS = 5
"""Warnings about one output schema; the first one decides, the others save the author a second import."""
MAX_PARAMETERS = 1_000
"""Parameters of one operation, which form one schema. The measured documents have at most 47."""
MAX_ORIGINAL_LENGTH = 100
"""Characters of a parameter's original name in a description, enough for all but hostile names."""
MAX_SCHEMA_BYTES = 256 * 1024
"""Bytes of one input schema; above it descriptions are dropped, then far schemas. Of the measured documents, one
reaches it.
"""
MAX_PATTERN_BYTES = 16 * 1024 * 1024
"""Bytes of all compiled patterns of one tool. One pattern may take 1 MiB, and each replica keeps them compiled."""
MEMBER_BYTES = 6
"""Bytes of JSON around a member besides its name and value: two quotes, colon, comma, and two bytes in reserve."""
MAX_BRIEF_LENGTH = 120
"""Characters of an argument's description, if the list is still too large with compact tools (decision 50)."""
DETAILS_TOOL_BYTES = 4_096
"""Bytes reserved in a list for the tool `get_endpoint_details`, which shortened tools refer to."""
MAX_TAG_LENGTH = 100
"""Characters of a tag, which profiles and rules select by; a longer tag is a sentence."""
MAX_TAGS = 50
"""Tags of one tool, because each snapshot keeps them in memory for the rules of profiles."""
