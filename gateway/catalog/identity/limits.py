"""Limits of keys, people, grants, clients and accounts of one tenant."""

from datetime import timedelta

MAX_ACCESS_RULES_BYTES = 128 * 1024
"""JSON bytes of all rules and roles of a tenant; each snapshot contains them."""
MAX_NAME_PATTERNS = 1000
"""Limit on the patterns of names of all rules: each is compared with each primitive whenever a snapshot is loaded."""

MAX_ACCOUNTS = 20_000
"""Limit on the accounts of one tenant."""
MAX_SHOWN_ACCOUNTS = 1_000
"""Credentials and accounts on the page of one user, which is not paged; a tenant has fewer credentials."""

MAX_CONSENTS = 300
"""Limit on the consents of one person."""

MAX_GRANTS = 100
"""Limit on the grants of one person; a further one revokes the oldest."""

MAX_ANNOUNCED = 1000
"""Number of people whose sessions end at once when their issuer changes; other sessions end within seconds."""

MAX_FOUND_KEYS = 20
"""Limit on the keys that are checked in one search."""

MAX_DYNAMIC_CLIENTS = 500
"""Limit on the clients that registered themselves; the oldest unused client is then replaced."""
MIN_UNUSED_AGE = timedelta(minutes=10)
"""Age below which an unused client is not replaced: a person may still be signing in, for up to ten minutes."""

MAX_PEOPLE = 10_000
"""Limit on the people of one tenant, denied ones included."""
MAX_DENIED_AHEAD = 10_000
"""Further people of one tenant who can be denied before their first sign-in, so that a denial has room."""

ROTATION_POLL_S = 20.0
"""Seconds between looks for a re-encryption that an operator has requested at another replica."""
ROTATION_PAUSE_S = 0.25
"""Seconds between attempts for one tenant, while other transactions lock some of its rows."""

MAX_DEPENDENT_KEYS = 20
"""Limit on the API keys that are listed for each secret key."""

MAX_SESSIONS = 20
"""Limit on the browser sessions of one person; a further one ends the oldest."""
