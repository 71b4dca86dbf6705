"""Limits of what a tenant configures: rules, keys, grants and addresses."""

MAX_ACCESS_RULES = 500
"""Access rules of one tenant; a replica reads all of them for each caller's view of the primitives."""
MAX_ROLE_RULES = 100
"""Rules about the roles of people. Chosen, not measured: a group needs one rule."""
MAX_OPERATOR_TENANTS = 100
"""Tenants to which the role of one operator is limited. Chosen, not measured: more are a role without a limit."""
MAX_ROLE_KINDS = 30
"""Kinds to which a role is limited; there are about 20."""
MAX_WHO = 100
"""Callers that one rule names. Groups cover more callers than any list of names."""

CODE_S = 60
"""Seconds for which an authorization code is valid; RFC 6749 permits ten minutes, and a client exchanges it at once."""

MAX_GRANT_S = 90 * 86_400
"""Maximum lifetime of a grant in seconds; an unused self-registered client is deleted after the same time."""
MAX_INTROSPECTION_CACHE_S = 60
"""Limit on the seconds for which an introspection response is cached: a token that its issuer revoked is valid as long.
"""
MAX_SUBJECT_LENGTH = 200
"""Limit on a person's subject at the issuer, in characters. OpenID Connect permits 255; issuers use identifiers."""

MAX_OVERLAP_S = 30 * 86400
"""Limit in seconds on the overlap of a rotation, so that a forgotten old secret ends within a month."""

POLICY_BURST_S = 2
"""Seconds of the rate that may arrive at once, as in the default limits."""
MAX_POLICY_RULES = 64
"""Rules of one policy; a call is compared with each of them until one matches."""
MAX_CONDITIONS = 8
"""Conditions of one rule; all are evaluated on the arguments of each call that its other members match."""
MAX_POINTERS = 50
"""Arguments that a rule records. Chosen, not measured: a record has at most 8,000 bytes."""
MAX_VALUES = 50
"""Values of one condition; each is compared with the argument."""
MAX_VALUE_LENGTH = 512
"""Characters of a value of a condition, and of a pointer of a rule."""

MIN_SUMMARY_THRESHOLD = 4096
"""The lowest threshold in bytes: a summary has about as many, so summarising less would save nothing."""
MAX_SUMMARY_THRESHOLD = 262_144
"""The highest threshold in bytes: a result above it is cut, so it has to be summarised."""

MAX_REDIRECT_URI_LENGTH = 500
"""Characters of a redirect URI, which a sealed cookie contains together with the other parameters of a request."""
MAX_REDIRECT_URIS = 20
"""Redirect URIs of one client. Chosen, not measured: one for each environment."""

MAX_PATH_LENGTH = 512
"""Limit on the characters of a path or field; the path is part of a URL of the secret store."""
