"""Limits of the doctor: the time of each check, and what a finding names."""

from datetime import timedelta

TIMEOUT_S = 15.0
"""Seconds of one check; after them the finding is that its part does not respond."""
RECENT = timedelta(days=7)
"""Time whose audit entries are read."""
LARGE_RESULT_BYTES = 200_000
"""Bytes of a result with 25,000 tokens of four bytes each, the limit of Claude Code; JSON is sent twice, as text and as
structured content."""
MAX_NAMED = 5
"""Objects that one finding names: a line that a person reads."""
MAX_TENANTS = 100
"""Tenants that one check reads, so that it ends within its time."""
MAX_SOURCES = 5
"""Sources of a tenant whose secrets are read, until one of them is decrypted."""
SMALL_SKEW_S = 1.0
"""Seconds by which the clocks of two machines may differ without a finding."""
LARGE_SKEW_S = 5.0
"""Seconds from which a difference of the clocks is a failure."""
MIN_KEY_LENGTH = 32
"""Characters of a secret key: 32 random ones cannot be guessed."""
MAX_REFERENCES = 50
"""References that one check reads: each may be a request to a store outside."""
MAX_REFERENCING_ISSUERS = 10
"""Issuers of a tenant whose references are read: as many as a tenant may have."""
MAX_EXAMINED_ISSUERS = 100
"""Issuers of a tenant that one check reads."""
MAX_EXAMINED_CREDENTIALS = 1000
"""Credentials of a tenant that one check reads: as many as a tenant may have."""
MAX_PROPOSAL_AGE = timedelta(days=14)
"""Age from which a pending proposal is reported: two weeks, so that a holiday of its reviewer is no finding."""
