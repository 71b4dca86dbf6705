"""Before and after of a changed object, for the audit entry of its change.

Both sides have the fields that differ, by the declarations of `gateway.domain.tenancy.recorded_fields`. A side is
bounded: of long lists only the elements that differ are recorded, and a field that does not fit is a fingerprint. Texts
with a known form of a secret, and texts under the name of a credential, are not recorded. A fingerprint is a MAC, so a
value cannot be guessed from it.
"""

import hmac
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from enum import Enum
from functools import cache
from typing import TypeAlias, cast, get_type_hints

import orjson
from anyio.lowlevel import checkpoint

from gateway.definitions.credential_names import is_credential_name
from gateway.definitions.limits import MAX_RECORDED_DEPTH, MAX_RECORDED_TEXT_LENGTH, MAX_SIDE_BYTES
from gateway.domain.json_text import decode_json
from gateway.domain.members.secret import Secret
from gateway.domain.tenancy.recorded_fields import Recording
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.search import search

_SEARCHED_LENGTH = 8_000
"""Characters that are searched for secrets between two checkpoints: at most 20 ms."""
_BOOKKEEPING = frozenset({"tenant", "id", "version", "created_at", "updated_at"})
"""Fields of every object that are not part of a change."""
_HIDDEN = "(not recorded)"
_URL = re.compile(r"https?://\S*", re.IGNORECASE)
"""A run of characters that begins with a URL. Each character is read once, however many URLs a run repeats."""
_USER = re.compile(r"//[^/@?#]*@")
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_EMPTY: Sequence[object] = (None, "", [], {})

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Side: TypeAlias = dict[str, Json]


async def describe_change(before: object | None, after: object | None, *, key: bytes) -> dict[str, object]:
    """Return the members `before` and `after` of an entry's detail; `key` is the key of the fingerprints.

    An object that was created has no `before`, one that was deleted no `after`; both are dataclasses. Without a
    difference, the result is empty.
    """
    old, new = _read(before, key), _read(after, key)
    if before is not None and after is not None:
        old, new = _differences(old, new)
    else:
        old, new = ({name: value for name, value in side.items() if value not in _EMPTY} for side in (old, new))
    if max(len(orjson.dumps(old)), len(orjson.dumps(new))) > MAX_SIDE_BYTES:
        old, new = _shorten(old, new), _shorten(new, old)
    sides = {"before": _limit(old, key), "after": _limit(new, key)}
    secrets = await _find_secrets([*sides.values()])
    return {name: _hide(side, secrets) for name, side in sides.items() if side}


def _read(value: object | None, key: bytes) -> Side:
    if value is None:
        return {}
    return {name: field for name, field in _members(value, key, 0) if name not in _BOOKKEEPING}


def _members(value: object, key: bytes, depth: int) -> Iterator[tuple[str, Json]]:
    """Yield the recorded fields of a dataclass or struct."""
    for name, recording in _recordings_of(cast("Hashable", type(value))).items():
        field: object = getattr(value, name)
        if recording is Recording.OMITTED:
            continue
        if field is not None and (recording is Recording.CONCEALED or (recording is None and isinstance(field, bytes))):
            yield name, _fingerprint(key, field)  # guard: changes-concealed
        elif recording is Recording.JSON and isinstance(field, bytes):
            yield name, _to_json(decode_json(field), key, depth) if field else None
        else:
            yield name, _to_json(field, key, depth)


def _to_json(value: object, key: bytes, depth: int) -> Json:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Secret):  # guard: secret-in-no-trail
        return _HIDDEN
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        return _to_text(value, key)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes) or depth >= MAX_RECORDED_DEPTH:
        return _fingerprint(key, value)
    if isinstance(value, Mapping):
        return dict(_entries(cast("Mapping[object, object]", value), key, depth))
    if isinstance(value, AbstractSet):
        return [*sorted(str(_to_json(item, key, depth + 1)) for item in cast("AbstractSet[object]", value))]
    if isinstance(value, Sequence):
        return [_to_json(item, key, depth + 1) for item in cast("Sequence[object]", value)]
    return dict(_members(value, key, depth + 1))


def _entries(value: Mapping[object, object], key: bytes, depth: int) -> Iterator[tuple[str, Json]]:
    """Yield the entries of a mapping with free names; texts under the name of a credential are hidden."""
    for name, item in value.items():
        is_secret = isinstance(item, str) and is_credential_name(str(name))  # guard: changes-credential-names
        yield str(name), _HIDDEN if is_secret else _to_json(item, key, depth + 1)


def _to_text(text: str, key: bytes) -> str:
    """Return a text, without the query and user of a URL, which may be secrets."""
    found = _URL.sub(_without_secrets, text)  # guard: changes-of-urls
    if len(found) > MAX_RECORDED_TEXT_LENGTH:
        found = f"{found[:MAX_RECORDED_TEXT_LENGTH]}…"
    return found if found == text else f"{found} {_fingerprint(key, text)}"


def _without_secrets(url: re.Match[str]) -> str:
    return _USER.sub("//", _QUERY.sub(f"?{_HIDDEN}", url[0], count=1))


def _fingerprint(key: bytes, value: object) -> str:
    packed = value if isinstance(value, bytes) else orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS)
    return f"mac:{hmac.digest(key, packed, 'sha256').hex()[:16]}"


def _differences(old: Side, new: Side) -> tuple[Side, Side]:
    """Return the members that differ, recursively; an object that only one side has is whole."""
    before: Side = {}
    after: Side = {}
    for name in {**old, **new}:
        one, another = old.get(name), new.get(name)
        if name in old and name in new and one == another:
            continue
        if isinstance(one, dict) and isinstance(another, dict):
            before[name], after[name] = _differences(one, another)
            continue
        if name in old:
            before[name] = one
        if name in new:
            after[name] = another
    return before, after


def _shorten(side: Side, other: Side) -> Side:
    """Return the side with only those elements of its lists that the same list of the other side lacks."""
    return {name: _without(value, other.get(name)) for name, value in side.items()}


def _without(value: Json, other: Json) -> Json:
    if not isinstance(value, list) or not isinstance(other, list):
        return value
    kept = [item for item in value if item not in other]
    return [*kept, f"({len(value) - len(kept)} equal elements)"]


def _limit(side: Side, key: bytes) -> Side:
    """Replace the largest fields by fingerprints until the side fits."""
    sizes = {name: len(orjson.dumps(value)) for name, value in side.items()}
    found = dict(side)
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        if sum(sizes.values()) <= MAX_SIDE_BYTES:  # guard: changes-bounded
            break
        found[name] = f"({sizes[name]} bytes) {_fingerprint(key, side[name])}"
        sizes[name] = 0
    return found


async def _find_secrets(value: Json) -> AbstractSet[str]:
    """Return the texts and names that contain a known form of a secret."""
    found: set[str] = set()
    group: list[str] = []
    size = 0
    for text in _texts(value):
        group.append(text)
        size += len(text)
        if size >= _SEARCHED_LENGTH:
            found |= _with_secrets(group)
            group, size = [], 0
            await checkpoint()
    return found | _with_secrets(group)


def _with_secrets(texts: Sequence[str]) -> set[str]:
    if not search(GuardrailCheck.SECRETS, (), "\n".join(texts)):
        return set()
    return {text for text in texts if search(GuardrailCheck.SECRETS, (), text)}


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _hide(value: Json, secrets: AbstractSet[str]) -> Json:
    if not secrets:
        return value
    if isinstance(value, str):
        return _HIDDEN if value in secrets else value  # guard: changes-secret-forms
    if isinstance(value, dict):
        return {_HIDDEN if name in secrets else name: _hide(item, secrets) for name, item in value.items()}
    return [_hide(item, secrets) for item in value] if isinstance(value, list) else value


@cache
def _recordings_of(kind: Hashable) -> Mapping[str, Recording | None]:
    """The fields of a dataclass or struct, each with its declared treatment, if any."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: next(_marks(hint), None) for name, hint in hints.items() if not name.startswith("_")}


def _marks(hint: object) -> Iterator[Recording]:
    return (mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Recording))
