"""Limits of converted schemas: copies, parts and values."""

MAX_BRANCHES = 1_000
"""Limit on the schemas that apply to the same value, with references followed."""
MAX_SCHEMAS = 5_000
"""Limit on the schemas of one tool."""
MAX_DEFAULT_BYTES = 4 * 1024**2
"""Limit on the bytes of one document's schemas with a default; further defaults are not checked."""
MAX_UNITED = 50
"""Schemas that are united for a shortened list; above it the argument stays as it is and becomes stubs."""
MAX_COPIED_VALUES = 20_000
"""Values that are copied in one document to open closed parts; hostile ones nest them in each other."""
MAX_MERGED = 200
"""Schemas of one hierarchy of `allOf` that are read: a hostile one would multiply its properties. Chosen, not measured.
"""
MAX_MERGED_PARTS = 2_000
"""Parts of `allOf` that wait to be read, so that repeated long lists cost no more than one."""
MAX_DISCRIMINATOR_VALUES = 200
"""Values of a discriminator for one branch; several names of a `mapping` may lead to it."""
MAX_COMPONENT_NAME_LENGTH = 100
"""Characters of a name under `$defs`, which each reference repeats in the bytes of a tool."""
MAX_CACHED_CLOSURES = 64
"""Cached closures; the compilation steps of one tool request the same closures."""
MAX_SUBTYPES = 100
"""Subtypes that a discriminator implies; each becomes a branch of the schema at every use."""
MAX_EXAMPLE_BYTES = 64 * 1024
"""Bytes of an example that is checked (decision 49); larger ones are dumps of whole responses."""
MAX_AT_ONE_PLACE = 20
"""Examples of one schema, parameter or media type that are checked; further ones show the same shapes."""
MAX_VISITS = 20_000
"""Visits of schemas to values, above which an example is not checked: recursive branches double them at each level
(decision 49).
"""
MAX_LISTED_EXAMPLES = 3
"""Examples that a listed schema has; each costs tokens in every list (decision 49)."""
MAX_LISTED_EXAMPLE_BYTES = 200
"""Bytes of a listed example of a part of a value (decision 49)."""
MAX_WHOLE_EXAMPLE_BYTES = 1_500
"""Bytes of a listed example of a whole argument, a tenth of a tool's budget (decision 49)."""
MAX_PATTERN_LENGTH = 512
"""Characters of a pattern; a longer one is dropped. Compilation of a long one takes time even if it fails."""
MAX_DISCRIMINATOR_STEPS = 100_000
"""Schemas that are read for the discriminators of one document, because branches share hierarchies. Chosen, not
measured.
"""
MAX_CHOICE_LEVELS = 16
"""Levels of choices in choices below one discriminator; each may multiply the number of schemas."""
MAX_SCHEMA_DEPTH = 40
"""Levels of one inline schema; below them anything is accepted. The translation is recursive."""
MAX_CACHED_VALIDATORS = 500
"""Validators of small schemas that one import keeps; many schemas differ only in their texts."""
MAX_CHECKED_BYTES = 4096
"""Bytes of a default, its schema and the schemas that it references, above which the default is not checked."""
MAX_KEPT_EXAMPLES = 50
"""Values of a relaxed `enum` that stay as examples. Chosen, not measured."""
MAX_XML_NODES = 2_000
"""Nodes of the XML form of one operation; members beyond it are written by their names alone. Chosen, not measured."""
MAX_XML_MERGED = 50
"""Schemas that are united for the members of one XML element. Chosen, not measured."""
