"""Limits of manifests, plans and the secrets that they refer to."""

MAX_ENTRIES = 100_000
"""Entries of folders that one run looks at; more means that a folder such as `/` was named by mistake."""
MAX_FILES = 10_000
"""Files of one run: one file for each object of the largest request, and as many again."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all files, and of one plan: memory of the command stays below a few hundred MiB."""
MAX_DOCUMENTS = 20_000
"""Documents of one run; the gateway accepts fewer objects in one request."""
MAX_VALUES = 2_000_000
"""Values of all documents, with each alias counted as if its value were written out."""
MAX_TEXT = MAX_BYTES
"""Characters of all texts and keys, with aliases written out: an alias of a long text costs nothing to write."""
MAX_SHOWN_FAULTS = 100
"""Faults that one run prints; more are counted."""
MAX_SECRET_BYTES = 64 * 1024
"""Bytes of a secret in a file; private keys and service accounts have a few KiB."""
MAX_WAIT_S = 60
"""Seconds that one request waits for the rate limit: a large one costs two seconds of it, and others use it too."""
PLAN_LIFETIME_S = 24 * 60 * 60
"""Seconds after which a plan is refused: the time between a review and its deployment."""
MAX_SHOWN_CHANGES = 100
"""Changed values that are listed for one object, as many as the gateway returns one by one."""
MAX_PATH_LENGTH = 4096
"""Characters of a path in a manifest, as in `PATH_MAX` of Linux."""
