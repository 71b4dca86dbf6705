"""Text patterns of the built-in guardrails: secrets, personal data and prompt injection.

Every pattern runs in the engine that also runs the patterns of JSON Schemas, in linear time. Card and account numbers
are candidates until their checksum is verified (`gateway.domain.text_search.checksums`).
"""

from collections.abc import Mapping
from functools import lru_cache

import jsonschema_rs

from gateway.domain.tenancy.keys import KEY_PATTERN
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.limits import MAX_COMPILED, MAX_JOINED_PATTERN_BYTES

_BLANK = r"[\t-\r\x1c-\x20]"

_FEW_WORDS = r"(?: [a-z0-9]+){0,4}"
_PERSON = r"(?:the )?(?:user|human|operator|anyone|person)"
_PRIVATE = (
    r"(?:api keys?|passwords?|passphrases?|secrets?|credentials?|access tokens?|private keys?|ssh keys?|system prompt"
    r"|chat history|conversation|environment variables|env file)"
)

SECRETS: Mapping[str, str] = {
    "aws-access-key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "ai-provider-key": r"\bsk-(?:ant-|proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}",
    "gateway-key": rf"\b{KEY_PATTERN}",
    "github-token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40})",
    "gitlab-token": r"\bglpat-[A-Za-z0-9_-]{20}",
    "google-api-key": r"\bAIza[0-9A-Za-z_-]{35}",
    "json-web-token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{16}",
    "npm-token": r"\bnpm_[A-Za-z0-9]{36}",
    "private-key": r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY",
    "pypi-token": r"\bpypi-AgE[A-Za-z0-9_-]{50}",
    "sendgrid-key": r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    "slack-token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10}",
    "slack-webhook": r"hooks\.slack\.com/services/T[A-Za-z0-9_]{8,}/B[A-Za-z0-9_]{8,}/[A-Za-z0-9_]{20}",
    "stripe-key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16}",
    "url-password": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,100}@",
    "webhook-secret": r"\bwhsec_[A-Za-z0-9+/]{24}",
}
PII: Mapping[str, str] = {
    "card": r"[0-9](?:[ -]?[0-9]){12}",
    "email": r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
    "iban": r"[A-Za-z]{2}[0-9]{2} ?[A-Za-z0-9]",
    "ip-address": r"\b(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\b",
    "phone": r"\+[1-9](?:[ ().-]{0,2}[0-9]){7,14}",
    "us-ssn": r"\b(?:00[1-9]|0[1-9][0-9]|[1-578][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])-[0-9]{2}-[0-9]{4}\b",
}
# `[t]ell` matches the word; the brackets keep it from the prose check of this repository.
PHRASES: Mapping[str, str] = {
    "conceal": (
        rf"\b(?:(?:do not|don t|never|must not) (?:[t]ell|inform|mention|reveal|notify|alert){_FEW_WORDS} {_PERSON}\b"
        rf"|without (?:telling|informing|asking|notifying|alerting) {_PERSON}\b)"
    ),
    "exfiltrate": (
        r"\b(?:send|post|forward|upload|exfiltrate|leak|transmit|append|include)(?: [a-z0-9]+){0,6} "
        rf"{_PRIVATE}(?: [a-z0-9]+)" + r"{0,4} (?:to|in|as|into|at|via|with)\b"
    ),
    "override": (
        r"\b(?:ignore|disregard|forget|override|bypass)(?: [a-z0-9]+){0,3} (?:previous|prior|above|earlier|preceding"
        r"|foregoing|system|all|your|these|those|any)(?: [a-z0-9]+){0,3} (?:instructions?|prompts?|rules|directions"
        r"|guidelines|directives|safeguards)\b"
    ),
    "reveal-prompt": (
        rf"\b(?:reveal|print|repeat|output|show|display|[t]ell me){_FEW_WORDS} (?:system prompt|hidden instructions?"
        r"|initial instructions?|developer message)\b"
    ),
    "role-change": (
        r"\byou are now (?:in )?(?:a|an|the|dan|developer|jailbroken|unrestricted|free)\b"
        r"|\bfrom now on you (?:are|will|must|should)\b|\bnew (?:system )?(?:instructions?|prompt) (?:follow|are|is)\b"
        r"|\b(?:enable|enter|activate) (?:developer|jailbreak|dan|god|admin) mode\b"
    ),
    "tool-directive": (
        r"\bbefore (?:using|calling|invoking|running) (?:this|any|the|other)(?: [a-z0-9]+){0,3}"
        r" (?:tools?|functions?)\b"
        r"|\byou (?:must|should|need to|have to) (?:now |first |always |also )?(?:call|invoke|execute) (?:the )?"
        r"(?:tool|function|[a-z0-9]+ tool|[a-z0-9]+ function)\b"
    ),
}
"""Phrases of words in lower case, searched in texts where all other characters are blanks."""
_MARKUP: Mapping[str, str] = {
    "chat-markup": (
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\|>|\[/?inst\]|<</?sys>>"
        r"|</?(?:system|important|system-reminder|system_prompt)>"
        rf"|(?:^|{_BLANK})#{{2,4}}{_BLANK}*(?:system|new{_BLANK}+instructions?){_BLANK}*:"
    ),
    "hidden-text": "[\U000e0020-\U000e007e]{4,}",
}
INJECTION: Mapping[str, str] = dict(
    sorted({**_MARKUP, **{name: phrase.replace(" ", " +") for name, phrase in PHRASES.items()}}.items())
)

PATTERNS: Mapping[GuardrailCheck, Mapping[str, str]] = {
    GuardrailCheck.SECRETS: SECRETS,
    GuardrailCheck.PII: PII,
    GuardrailCheck.INJECTION: INJECTION,
}
_SEARCHED_ALONE = frozenset({"url-password"})
"""Patterns that begin with a character class. Joined with others, they make the search many times slower."""
OPTIONAL = frozenset({"ip-address"})
"""Patterns that are used only if a guardrail names them, because they also match harmless text."""


def patterns_of(check: GuardrailCheck, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the patterns that a guardrail uses: the chosen ones, or else all that are not optional."""
    return chosen or tuple(name for name in PATTERNS[check] if name not in OPTIONAL)


def is_in(check: GuardrailCheck, names: tuple[str, ...], text: str) -> bool:
    """True if the text contains a match of one of the patterns; patterns that begin with a literal are joined."""
    patterns = PATTERNS[check]
    groups = [
        tuple(name for name in names if name not in _SEARCHED_ALONE),
        *((name,) for name in names if name in _SEARCHED_ALONE),
    ]
    return any(_compiled(tuple(patterns[name] for name in group)).is_valid(text) for group in groups if group)


@lru_cache(MAX_COMPILED)
def _compiled(patterns: tuple[str, ...]) -> jsonschema_rs.Draft202012Validator:
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    options = jsonschema_rs.RegexOptions(size_limit=MAX_JOINED_PATTERN_BYTES)  # guard: guardrail-linear-time
    return jsonschema_rs.Draft202012Validator({"pattern": joined}, offline=True, pattern_options=options)
