"""Names of headers, parameters and JSON members under which credentials are sent."""

import re

_CREDENTIAL = re.compile(
    r"pass(word|wd|phrase|code)|secret|token|authori[sz]ation|credential|cookie|(api|access|private)[-_]?key",
    re.IGNORECASE,
)


def is_credential_name(name: str) -> bool:
    """True if the values under a name are probably credentials."""
    return _CREDENTIAL.search(name) is not None


def is_count(name: str) -> bool:
    """True if numbers under the name of a credential are probably counts, such as `max_tokens`."""
    return "token" in name.casefold()
