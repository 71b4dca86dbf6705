"""Patterns of names and other strings. `WORDS` describes each pattern for error messages."""

LABEL = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TOOL_NAME = r"^[A-Za-z0-9_.-]{1,64}$"
PRIMITIVE_NAME = r"^[A-Za-z0-9_./-]{1,64}$"
PREFIX = r"^[A-Za-z0-9_.-]{1,32}$"
METHOD = r"^[A-Za-z-]{1,32}$"
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
POINTER = r"^(?:/(?:[^~/]|~0|~1)*)*$"
DIGEST = r"^[0-9a-f]{32}$"
SCOPE = r"^[!#-\[\]-~]+$"
HOST = r"^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$"
PATH = r"^(?:/(?:[^~/]|~0|~1)*)+$"
GROUP = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}:.+$"
ISSUER_SCOPE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[!#-\[\]-~]+$"
CALLER = (
    r"^(?:everyone|keys|people|key:.+|subject:.+|issuer:[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
    r"|group:[A-Za-z0-9][A-Za-z0-9._-]{0,63}:.+|scope:[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[!#-\[\]-~]+)$"
)
PERSON = r"^(?:people|subject:.+|issuer:[A-Za-z0-9][A-Za-z0-9._-]{0,63}|group:[A-Za-z0-9][A-Za-z0-9._-]{0,63}:.+)$"

WORDS = {
    LABEL: "must have 1 to 63 small letters, digits and hyphens, and neither begin nor end with a hyphen",
    NAME: "must have 1 to 64 letters, digits, dots, underscores and hyphens, and begin with a letter or a digit",
    PRIMITIVE_NAME: "must have 1 to 64 letters, digits, dots, underscores, slashes and hyphens",
    TOOL_NAME: "must have 1 to 64 letters, digits, dots, underscores and hyphens",
    PREFIX: "must have 1 to 32 letters, digits, dots, underscores and hyphens",
    METHOD: "must be the name of an HTTP method",
    PRINTABLE: "must not be empty or hold control characters",
    POINTER: "must be a JSON Pointer (RFC 6901), such as /items/0",
    SCOPE: "must be a scope (RFC 6749 section 3.3): visible ASCII without quotes and backslashes",
    HOST: "must be the name of a host, in small ASCII letters",
    DIGEST: "must have 32 hexadecimal digits, as the live source shows them",
    GROUP: "must be a group of an issuer, written ISSUER:GROUP",
    ISSUER_SCOPE: "must be a scope of an issuer (RFC 6749 section 3.3), written ISSUER:SCOPE",
    CALLER: "must be everyone, keys, people, key:ID, subject:SUBJECT, group:ISSUER:GROUP, issuer:ISSUER or "
    "scope:ISSUER:SCOPE",
    PERSON: "must be people, subject:SUBJECT, group:ISSUER:GROUP or issuer:ISSUER; keys have scopes instead",
    PATH: "must be a JSON Pointer (RFC 6901) in which `*` matches any part, such as /items/*/id",
}
