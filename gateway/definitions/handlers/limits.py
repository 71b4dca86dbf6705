"""Limits of declared handlers: requests, steps and completions."""

MAX_METHOD_FIELD_LENGTH = 256
"""Characters of a field's name and value that are compared; longer ones count as any text. Names of method fields are
far shorter.
"""
MAX_METHOD_READINGS = 64
"""Texts that the branches of one field can produce; more count as a method field, because each branch doubles them."""

MAX_COMPLETION_VALUES = 1_000
"""Values of a declared completion; MCP returns at most 100 of them for one text."""
MAX_COMPLETION_VALUE_LENGTH = 1_000
"""Characters of one value of a completion. Chosen, not measured: a user reads it in a menu."""
MAX_OPERATION_LENGTH = 2048
"""Characters of the method and path of an operation; a path is part of a URL, which has at most 2,048."""

MAX_TIMEOUT_S = 3600.0
"""The highest `timeout_s`, in seconds. The operator's maximum, `GATEWAY_UPSTREAM_TIMEOUT_MAX_S`, also applies."""
MIN_TIMEOUT_S = 0.1
"""The lowest `timeout_s`, in seconds: a TLS connection to another continent takes about 0.3; less fails each call."""
MAX_HEADERS = 32
"""Declared headers of one request; servers refuse heads of more than 8 KiB to 16 KiB, or about 100 headers."""
MAX_CREDENTIAL_NAME_LENGTH = 64
"""Characters of the name of a credential, as where the credential is created."""

MAX_STEPS = 100
"""Steps of one tool, in all branches together. Each can be a request; a call makes at most 250 calls anyway."""
MAX_STEP_DEPTH = 8
"""Levels of branches; the reader and the runner are recursive. Chosen, not measured."""
MAX_SLEEP_S = 30.0
"""Seconds of all pauses of one tool together. A pause holds a slot of a call; longer waits belong into a task."""
MAX_QUESTIONS = 10
"""Requests to the client that are sent in one round; a user answers them one after the other."""
MAX_SAMPLED_TOKENS = 100_000
"""The highest `maxTokens` of a sampling request. The client decides how many are paid for. Chosen, not measured."""
