"""Limits of reported changes of resources, and of signed deliveries."""

NOTIFY_TIMEOUT_S = 5.0
"""Seconds for the events of one report; an unreachable Redis must not hold the request."""

SECRET_BYTES = 32
"""Bytes of a new secret: 256 random bits, as long as the digest."""
MIN_SECRET_BYTES = 24
"""Bytes of a given secret, the shortest that Standard Webhooks permits."""
MAX_SIGNATURES = 16
"""Signatures of one header that are compared; a rotation needs two, and each costs a comparison for each secret."""

TOLERANCE_S = 300
"""Seconds by which the time of a delivery may differ from the gateway's, as Standard Webhooks recommends."""
REMEMBERED_S = 24 * 3600
"""Seconds for which the id of a delivery is remembered, far longer than its time is accepted."""
MAX_DELIVERY_ID_LENGTH = 256
"""Characters of the id of a delivery. Chosen, not measured: usual ids have about 30."""
