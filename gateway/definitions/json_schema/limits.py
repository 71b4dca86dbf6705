"""Limits of JSON Schemas, of their checks, and of the faults and readings that are found."""

MAX_SCHEMA_BYTES = 256 * 1024
"""JSON bytes of a schema; compiling takes time in proportion, and each list contains the schema."""
MAX_ENUM_VALUES = 2_000
"""Values of one `enum`; the check compares them one by one."""
MAX_PATTERNS = 200
"""Different patterns of one schema: 200 of 256 KiB are at most 50 MB of memory."""
MAX_PATTERN_LENGTH = 512
"""Characters of one pattern; matching takes time in proportion to the pattern and the text."""

MAX_READINGS = 4
"""Limit on the readings of one call; each is checked against the whole schema."""
MAX_COERCION_WORK = 16_000
"""Limit on the work of one search, about 1 µs each: schemas that are followed, members, elements and listed values."""
MAX_PARSED_BYTES = 128 * 1024
"""Limit on the characters of JSON text that are parsed for one call, which takes up to 10 ms."""
MAX_COERCION_DEPTH = 64
"""Levels of a value that the recursive search enters, as many as a schema may be nested."""
MAX_COERCION_HOPS = 50
"""References and choices that are followed for one value; choices that lead to themselves would never end."""

MAX_REASON_LENGTH = 300
"""Characters of the reason of one fault; a model reads ten of them, and a validator quotes whole values."""
MAX_BRANCHES = 200
"""Branches of a choice that are compared in the search for the nearest; each branch is walked. Chosen, not measured."""
MAX_COMPARED = 20
"""Violations of one branch that are counted; a branch with more is not the nearest."""
MAX_OF_BRANCH = 3
"""Faults of the nearest branch that are returned, so that one choice leaves room for other faults."""
MAX_EXPLAINED_DEPTH = 5
"""Choices within choices that are explained; a deeper choice keeps the validator's message."""
MAX_LISTED_VALUES = 20
"""Permitted values that a reason lists; the characters of a reason end longer lists earlier."""
MAX_SHOWN_NAME_LENGTH = 60
"""Characters of a member's or a branch's name in a reason; both come from the caller or the document."""

MAX_MARKS = 10**9
"""Marks of one schema, which double with each level of references; above any limit on work, and a small integer."""

MAX_WALK_STEPS = 1_500
"""Limit on the schemas that are compared with a part of the value; each takes about 2 µs."""
MAX_WALK_DEPTH = 24
"""Levels of the value that the recursive walk enters. Chosen, not measured."""
MAX_WALK_HOPS = 20
"""References and parts of `allOf` that are followed for one value; references may lead to themselves."""
MAX_WALK_ITEMS = 50
"""Elements of a list that are compared; at most ten faults are reported, so more elements would rarely add one."""
MAX_UNKNOWN_NAMES = 5
"""Unknown members that a fault names; the others are of the same kind."""

MAX_STATES = 2**20
"""States of a pattern; repetitions multiply, and the number would grow without bound. A pattern with as many is
refused.
"""

MAX_CHECKS = 1_000
"""Limit on the number of schemas that may apply to one part of a value."""

MAX_TEXT_VALUES = 20_000
"""Values of the JSON text in one argument, a fifth of those of a message."""
MAX_TEXT_CONTAINERS = 5_000
"""Lists and objects of the JSON text in one argument, a fifth of those of a message."""
MAX_NUMBER_LENGTH = 32
"""Characters of a text that is read as a fraction; a float in full has at most 24."""

MAX_SCHEMAS = 5_000
"""Schemas and subschemas of a tenant's definition; each is an object in memory for as long as the tool is in use."""
MAX_SCHEMA_DEPTH = 64
"""Levels of schemas within each other; validators descend recursively."""

MAX_LOOP_UNITS = 1_000_000
"""Units of an unmetered check on the event loop: at most 40 ms, and 2 to 15 ms for most schemas."""
MAX_COPIES = 40_000
"""Limit on the values that `jsonschema-rs` copies into violations; each copy costs about 180 bytes and 0.5 µs."""
MAX_EXPLAINED_BYTES = 16 * 1024
"""Limit on the bytes of JSON of a value whose violations are collected."""
MAX_CONTAINERS_READ = 50_000
"""Lists and objects of JSON text that is decoded on the event loop; with the two limits below, up to 20 ms."""
MAX_VALUES_READ = 200_000
"""Values of JSON text that is decoded on the event loop."""
MAX_BYTES_READ = 1024 * 1024
"""Bytes of JSON text that is decoded on the event loop."""
MAX_IMPORTED_SCHEMAS = 20_000
"""Subschemas of any definition, also of an imported one; the work of a schema with more is not computed but unbounded.
"""
MAX_MEASURED = 2_000
"""Containers of a value whose depth is measured; with more, their number is taken as the depth, which is never less."""
INLINE_BYTES = 8 * 1024
"""Bytes of a definition that is compiled on the event loop when it is needed, which takes a few milliseconds."""

MAX_FAULTS = 10
"""Faults of one refused value: a model corrects ten arguments in one go, and an error stays short."""
MAX_TRIED = 20
"""Arguments that are checked one by one, twice the faults that are reported; each check compiles a schema."""
MAX_NEAREST = 4
"""Faults of one argument, so that it leaves room for the faults of others."""
MAX_SEARCH_CPU_S = 0.01
"""CPU seconds of the thread after which the search stops and returns the faults found so far. Compiling the schema of
one argument may take milliseconds. CPU time makes the result independent of the machine's load.
"""
