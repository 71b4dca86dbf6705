"""Limits of the pages for people: sessions, pending requests and texts."""

MAX_SHOWN_NAME_LENGTH = 80
"""Length of the shown part of a name in characters; a longer name would push warnings and hosts out of sight."""
MAX_PENDING = 3
"""Limit on concurrent sign-ins, and on connections of accounts, of one browser; each request has their cookies."""
PAGE_BURST_S = 20
"""Size of the burst: the requests of this many seconds at the rate."""
MAX_CALLBACK_PARAMETERS = 20
"""Parameters of a provider's redirect; OAuth and OpenID Connect define about five."""
