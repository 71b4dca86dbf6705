"""The kinds of guardrail checks, apart from the guardrails: searches of texts need only the kind."""

from enum import StrEnum


class GuardrailCheck(StrEnum):
    """Kind of a check."""

    SECRETS = "secrets"
    PII = "pii"
    INJECTION = "prompt-injection"
    SIZE = "size"
    HTTP = "http"
