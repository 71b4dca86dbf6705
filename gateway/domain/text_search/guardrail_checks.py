"""Kinds of guardrail checks, in a separate module, because text searches need only the kind."""

from enum import StrEnum


class GuardrailCheck(StrEnum):
    """Kind of a check."""

    SECRETS = "secrets"
    PII = "pii"
    INJECTION = "prompt-injection"
    SIZE = "size"
    HTTP = "http"
