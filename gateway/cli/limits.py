"""Limits of single commands: waits, and what their text shows."""

MAX_PATH_OPTIONS = 3
"""Path prefixes that advice on a long list suggests, the most frequent ones."""
MAX_SCHEMA_DEPTH = 16
"""Levels of references and branches in which the types of an argument are searched; deeper ones allow all types."""
MAX_HELP_LENGTH = 200
"""Characters of a sentence in the list of commands. No sentence is longer, so click truncates none."""
MAX_ROUNDS = 100
"""Requests for one call whose server requires input again and again, so that the command ends."""
MIN_RETRY_S = 1
"""Least seconds between two tries, whatever a response demands: `Retry-After: 0` would be a loop without a pause."""
APPROVALS_POLL_S = 2.0
"""Seconds between two lists of approvals: a person decides, and each list counts against the key's rate."""
MAX_WATCHED = 100
"""Approvals of one page that `approval watch` requests."""
MAX_REMEMBERED_IDS = 5000
"""Entry ids that `audit tail` stores to skip repeated entries after a reconnection."""
ROTATION_POLL_S = 0.5
"""Seconds between two looks at a rotation, which takes seconds to minutes."""
WEBHOOK_S = 30.0
"""Seconds for the test of a webhook, as for the whole of an upstream call."""
MAX_CANDIDATES = 10
"""Objects that the message about an ambiguous name shows with their ids."""
MAX_NEAR_NAMES = 3
"""Near names that the message about an unknown one suggests."""
MAX_READ_NAMES = 1_000
"""Objects whose names are compared with an unknown one: five pages, after the command has failed."""
MAX_SEARCH_LENGTH = 100
"""Characters of a name with which a list is searched; for a longer one, the list is read without a search."""
COMPLETION_S = 1.0
"""Seconds after which the shell gets no names: a person waits for the completion, and can write the name."""
MAX_COMPLETED = 200
"""Names that the shell is offered: one page of a list."""
MAX_NAMED = 5
"""Objects that a question about several ones names; it has their number, and `list` shows all."""
