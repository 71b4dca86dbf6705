"""Names of headers, parameters and JSON members under which credentials are sent."""

import re

from gateway.domain.text_search.normalization import fold

_CREDENTIAL = re.compile(
    r"pass(word|wd|phrase|code)|secret|token|authori[sz]ation|credential|cookie|(api|access|private)[-_]?key",
    re.IGNORECASE,
)

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"(?<![a-z])(pwd|pass|pin|otp|totp|(mfa|2fa|verification|security|one[-_ ]?time)[-_ ]?code|cv[vc]2?|sig|signature|"
    r"session[-_ ]?(id|key)|sid|connection[-_ ]?string|dsn|card[-_ ]?number|pan|iban|ssn|auth|bearer|jwt)(?![a-z])"
)


def is_credential_name(name: str) -> bool:
    """True if the values under a name are probably credentials."""
    return _CREDENTIAL.search(name) is not None


def is_secret_name(name: str) -> bool:
    """True if the values under a name should not be stored: credentials, and codes or numbers that prove an identity.

    Look-alikes of Latin letters count as these letters. An approver still sees such values if they are no credentials.
    """
    folded = fold(name)
    return is_credential_name(folded) or _SECRET.search(_WORD_START.sub("_", folded).lower()) is not None


def is_count(name: str) -> bool:
    """True if numbers under the name of a credential are probably counts, such as `max_tokens`."""
    return "token" in name.casefold()
