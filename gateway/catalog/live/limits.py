"""Limits of live sources: their primitives, definitions and reports."""

from gateway.upstream.live.agent.limits import MAX_PRIMITIVES

MAX_REMEMBERED = 1_000
"""Limit on the remembered primitives of one live source; absent tools are kept before other absent primitives."""

MAX_DEFINITION_BYTES = 64 * 1024
"""Limit on one definition, in bytes of JSON."""
MAX_NOTICES = 50
"""Notices of one discovery, the last of which states that there are more."""
MAX_NOTICE_LENGTH = 300
"""Characters of one notice; the source chooses the names in it."""
MAX_READ = 4 * MAX_PRIMITIVES
"""Primitives of one live source that are read at all, four times those that are accepted: some are invalid."""
DISCOVERY_CPU_S = 5.0
"""CPU time in seconds for one discovery. 500 plain tools take 0.3 s; deliberately expensive schemas took a minute."""

MAX_SHOWN_PATTERN_LENGTH = 60
"""Characters of a removed pattern in a notice."""
MAX_ROUNDS = 15
"""Limit on validations of one definition; each one names at most 20 faults."""

MAX_DIFFERENCES = 50
"""Changed members of a held definition that are named; a person reviews the definition itself."""
MAX_REVIEWED = 50
"""Limit on the lines of `review` for held, for hidden, and for suspicious primitives."""

MAX_FINDINGS = 200
"""Limit on the findings of one live source."""
REVIEW_CPU_S = 2.0
"""CPU time in seconds for one search. 4 MiB of plain definitions take 0.2 s."""
