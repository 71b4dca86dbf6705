"""Limits of the writers of audit trails: groups, queues and waits."""

MAX_HEAD_FILE_BYTES = 256 * 1024 * 1024
"""Bytes that are read from the end of the file; earlier heads are not compared."""
MAX_OF_A_TENANT = 100
"""Maximum number of different refusals per tenant and minute; others are counted under the principal `others`."""
MAX_OF_A_PRINCIPAL = 20
"""Of these, the most of one principal, so that its flood leaves room for the refusals of others."""
MAX_PENDING_OF_A_TENANT = 20
"""Entries of one tenant that wait for PostgreSQL; further refusals are counted."""
MAX_PENDING = 1000
"""Entries of all tenants that wait, about 1 MB."""
COMMIT_S = 10.0
"""Deadline of a group without entries that can be spooled."""
BACK_OFF_S = 1.0
"""Back-off after the database refused a connection, if there is a spool."""
