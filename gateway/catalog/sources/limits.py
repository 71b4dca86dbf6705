"""Limits of imports and refreshes: documents, their uploads, workers, and reports."""

from datetime import timedelta

MAX_REMOVED_SHOWN = 20
"""Removed tools that a refused activation names, those with the most recent calls first."""

MAX_FILES = 100
"""Files of one document; each is a request to its server."""
MAX_ROUNDS = 20
"""Times that the files of files are fetched: references may lead from file to file."""
FILES_S = 60.0
"""Seconds for the fetch of all files of a document, in which a request or a refresh waits."""

MAX_DOCUMENT_TITLE_LENGTH = 300
"""Characters of a document's title that are stored."""

MAX_PREFIX_LENGTH = 24
"""Characters of a suggested prefix, so that 40 of 64 are left for the names."""
MAX_CONFLICTS_SHOWN = 100
"""Conflicting names that a refused import lists."""

MAX_WARNINGS = 50
"""Warnings about overrides in one report; the number of the others follows."""

REFRESH_S = 240.0
"""Maximum duration of a refresh in seconds; the lease of a replica is longer."""
MAX_FAULT_LENGTH = 300
"""Characters of the stored reason of a failed refresh."""

MAX_BACKOFF = timedelta(hours=6)
"""Maximum back-off after failed refreshes, unless the source's own interval is longer."""

MAX_REMOVED = 50
"""Limit on the versions that one transaction removes."""

MAX_WORKER_QUEUE = 16
"""Documents that wait for a worker; each may have 32 MiB in memory."""
WORKER_QUEUE_S = 90.0
"""Maximum wait in seconds for a worker; each document ahead in the queue may take up to 30 s."""
CPU_GRACE_S = 5
"""CPU seconds of a worker above its time limit: the kernel's limit applies only if the gateway did not end it."""

UPLOAD_LIFETIME = timedelta(days=2)
"""Time from an upload, or a dry run that names the document, to its deletion: a plan is valid for one day."""
MAX_UPLOADS = 50
"""Uploaded documents of one tenant: as many as one application may make versions of sources."""
MAX_UPLOADED_BYTES = 256 * 1024 * 1024
"""Bytes of the uploaded documents of one tenant: eight of the largest."""
