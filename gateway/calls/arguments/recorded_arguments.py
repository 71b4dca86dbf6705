"""The recorded form of a call's arguments in the audit trail: by rule, limited in size, without known forms of
secrets.
"""

import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from gateway.calls.arguments.limits import (
    MAX_HASHED_LENGTH,
    MAX_INTEGER,
    MAX_RECORD_BYTES,
    MAX_SEARCHED_LENGTH,
    MAX_TEXT_LENGTH,
)
from gateway.definitions.credential_names import is_count, is_secret_name
from gateway.definitions.policy.argument_selection import ArgumentSelection, Selected, Treatment
from gateway.domain.identifiers import TenantId
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.search import search_all

_HASH_CHARACTERS = 32
_NAMED_TEXT = re.compile(
    r"(?<![\w.-])([A-Za-z][\w.-]{0,63}+(?: [\w.-]{1,32}+)?)[\"']?[ \t]{0,8}[=:][ \t]{0,8}[\"']?([^\s;&,\"']{1,64})"
)
"""A name and a value in a text: `Password=…` of a connection string, `token=…` of a query, a header line."""
_BARE_TEXT = re.compile(
    r"\bbearer[ \t]+\S{8}|\bbasic[ \t]+[a-z0-9+/]{8,}={1,2}|\beyJ[\w-]{4,}\.[\w-]{2,}\.", re.IGNORECASE
)
"""Credentials without a name. Guardrails do not search for them, because descriptions of APIs contain such texts."""
_HIDDEN_NAME = "***"
_encode = msgspec.json.Encoder(order="sorted").encode


class ArgumentRecorder:
    """Records arguments; `derive` returns the secret key for a purpose."""

    def __init__(self, derive: Callable[[str], bytes]) -> None:
        self._derive = derive

    def record(
        self, tenant: TenantId, selection: ArgumentSelection, arguments: Mapping[str, object]
    ) -> dict[str, object]:
        """Return members for the detail of an audit entry: `arguments` with up to four parts, by JSON Pointer.

        `kept` has strings, numbers, booleans, nulls and empty containers; `hashed` has MACs, which are equal for equal
        values of one tenant. `dropped` and `cut` are lists. `cut` lists shortened strings, and containers with missing
        parts; the empty pointer means all arguments.
        """
        parts: dict[Treatment, dict[str, object]] = {treatment: {} for treatment in Treatment}
        found = _without_secrets(list(_limit_size(selection.select(arguments))))
        key = self._key_of(tenant) if any(one.treatment is Treatment.HASHED for one in found) else b""
        for path, treatment, value in found:
            pointer = "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path)
            parts[treatment][pointer] = _hash(key, value) if treatment is Treatment.HASHED else _shorten(value)
            if treatment is Treatment.KEPT and isinstance(value, str) and len(value) > MAX_TEXT_LENGTH:
                parts[Treatment.CUT][pointer] = None
        kept, hashed, dropped, cut = (parts[treatment] for treatment in Treatment)
        named = {"kept": kept, "hashed": hashed, "dropped": list(dropped), "cut": list(cut)}
        return {"arguments": {name: part for name, part in named.items() if part}}

    def _key_of(self, tenant: TenantId) -> bytes:
        return self._derive(f"recorded arguments of {tenant}")  # guard: recorded-hash-of-the-tenant


def _hash(key: bytes, value: object) -> str:
    return hmac.digest(key, _encode(value), "sha256").hex()[:_HASH_CHARACTERS]


def _shorten(value: object) -> object:
    if isinstance(value, str):
        return value[:MAX_TEXT_LENGTH]
    # an audit entry can store integers of 64 bits only
    is_large = isinstance(value, int) and abs(value) >= MAX_INTEGER
    return str(value) if is_large else value


def _limit_size(found: Iterable[Selected]) -> Iterator[Selected]:
    size = 0
    for selected in found:
        shown = _shorten(selected.value) if selected.treatment is Treatment.KEPT else None
        size += len(_encode((selected.path, shown))) + _HASH_CHARACTERS
        if size > MAX_RECORD_BYTES:  # guard: recorded-arguments-bytes
            yield Selected((), Treatment.CUT, None)
            return
        yield selected


def _without_secrets(found: Sequence[Selected]) -> Sequence[Selected]:
    """Drop values that contain a known form of a secret, and hide names that do."""
    texts = ["\n".join((*selected.path, _text_of(selected))) for selected in found]
    names = [any(map(_names_credential, (*selected.path, _start_of(selected)))) for selected in found]
    if not any(names) and not _has_secret("\n".join(texts)):
        return found
    return [
        _drop(selected) if is_named or _has_secret(text) else selected
        for selected, is_named, text in zip(found, names, texts, strict=True)
    ]


def _start_of(selected: Selected) -> str:
    """The part of a value that is searched for named credentials, which takes some microseconds for each name."""
    text = _text_of(selected)
    return text if selected.treatment is Treatment.KEPT else text[:MAX_HASHED_LENGTH]


def _text_of(selected: Selected) -> str:
    if selected.treatment in {Treatment.DROPPED, Treatment.CUT}:
        return ""
    value = selected.value
    return (value if isinstance(value, str) else _encode(value).decode())[:MAX_SEARCHED_LENGTH]


def _drop(selected: Selected) -> Selected:
    path = tuple(_HIDDEN_NAME if _names_credential(name) or _has_secret(name) else name for name in selected.path)
    return Selected(path, Treatment.DROPPED, None)


def _has_secret(text: str) -> bool:
    found = search_all({GuardrailCheck.SECRETS: (), GuardrailCheck.PII: ("card",)}, text)
    return any(found.values())  # guard: recorded-secrets


def _names_credential(text: str) -> bool:
    """True if the text contains a credential with its name, or with the scheme of an `Authorization` header."""
    if _BARE_TEXT.search(text) is not None:  # guard: recorded-bare-credentials
        return True
    return any(
        is_secret_name(name.replace(" ", "_")) and not (is_count(name) and value.isdigit())
        for name, value in _NAMED_TEXT.findall(text)
    )
