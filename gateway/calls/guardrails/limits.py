"""Limits of guardrails: the texts that they read, and their HTTP hooks."""

MAX_REQUEST_BYTES = 1024 * 1024
"""Bytes of the event that a hook receives; a call with a larger value counts as one that evades the guardrail."""
MAX_RESPONSE_BYTES = 16 * 1024
"""Bytes of a hook's response, which has an action and a reason."""
MAX_REASON_LENGTH = 300
"""Characters of a hook's reason that the caller receives."""
MAX_EXAMINED = 1000
"""Characters of a hook's reason that are escaped before it is cut; escapes only lengthen it."""
MAX_HOOKS = 4096
"""Hooks whose open requests are counted; a further one evicts the oldest, whose count begins again."""

MAX_TEXT_LENGTH = 1024 * 1024
"""Limit on the characters that one guardrail reads. It is twice the largest JSON result of an upstream, which contains
its body as text and as structure.
"""
MIN_NUMBER = 10**12
"""Numbers from here on are read as text: the shortest card numbers have 13 digits."""
MIN_BINARY_LENGTH = 1024
"""Minimum length of base64; shorter content is also read undecoded, because many secrets are valid base64."""
