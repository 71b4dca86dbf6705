"""Stored contexts, and the keys of them: in the keyring of the system where one works, otherwise in a private file."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from gateway.cli.contexts.files import APPLICATION, read_file, write_file
from gateway.cli.contexts.limits import MIN_KEYRING_PRIORITY
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at, to_object

_CONTEXTS, _KEYS = "contexts.json", "keys.json"
KEYRING, FILE = "keyring", "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """A gateway, a tenant, and the place of a key; the key itself is read when a command needs it."""

    name: str
    url: str
    tenant: str | None
    key_in: str | None

    @property
    def fields(self) -> JsonObject:
        """The facts for people and programs, without the key."""
        return {"name": self.name, "url": self.url, "tenant": self.tenant, "key": self.key_in}


def read_contexts() -> tuple[Mapping[str, StoredContext], str | None]:
    """Return the contexts by name, and the name of the current one.

    Raises:
        Failure: the file cannot be read.
    """
    found = read_file(_CONTEXTS)
    contexts = {
        name: StoredContext(
            name=name,
            url=text_at(one, "url"),
            tenant=text_at(one, "tenant") or None,
            key_in=text_at(one, "key") or None,
        )
        for name, one in to_object(found.get("contexts")).items()
    }
    current = text_at(found, "current")
    return contexts, current if current in contexts else None


def write_contexts(contexts: Mapping[str, StoredContext], current: str | None) -> None:
    """Store the contexts."""
    stored = {
        one.name: {name: value for name, value in one.fields.items() if name != "name"} for one in contexts.values()
    }
    write_file(_CONTEXTS, {"current": current, "contexts": stored})


def find_context(name: str) -> StoredContext:
    """Return the context of this name.

    Raises:
        Failure: there is none; the message has the near names.
    """
    contexts, _ = read_contexts()
    if name not in contexts:
        near = get_close_matches(name, contexts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`gateway context list` shows all"
        raise Failure(f"there is no context {name!r}; {hint}", ExitCode.NOT_FOUND, is_suggested=True)
    return contexts[name]


def read_key(context: StoredContext) -> str | None:
    """Return the key of a context; None if it has none.

    Raises:
        Failure: the keyring refused, or the file of keys can be read by others.
    """
    if context.key_in == KEYRING:
        found: object = _use_keyring("get_password", APPLICATION, context.name)
        return found if isinstance(found, str) else None
    return text_at(read_file(_KEYS, is_private=True), context.name) or None if context.key_in == FILE else None


def store_key(name: str, key: str) -> str:
    """Store the key of a context; return its place.

    Raises:
        Failure: it cannot be stored.
    """
    if _has_keyring():
        try:
            _use_keyring("set_password", APPLICATION, name, key)
        except Failure:
            pass  # a locked or refusing keyring is none
        else:
            return KEYRING
    write_file(_KEYS, {**read_file(_KEYS, is_private=True), name: key})
    return FILE


def forget_key(context: StoredContext) -> None:
    """Delete the key of a context.

    Raises:
        Failure: the keyring refused, or the file cannot be written.
    """
    if context.key_in == KEYRING:
        _use_keyring("delete_password", APPLICATION, context.name)
    elif context.key_in == FILE:
        keys = read_file(_KEYS, is_private=True)
        write_file(_KEYS, {name: key for name, key in keys.items() if name != context.name})


def _has_keyring() -> bool:
    """True if keyring is installed and has a backend that encrypts."""
    try:
        import keyring  # noqa: PLC0415  # optional

        return float(keyring.get_keyring().priority) >= MIN_KEYRING_PRIORITY
    except Exception:  # a backend can fail with any exception, and is none then
        return False


def _use_keyring(function: str, *arguments: str) -> Any:
    try:
        import keyring  # noqa: PLC0415  # optional

        return getattr(keyring, function)(*arguments)
    except Exception as error:  # a backend can fail with any exception
        kind = type(error).__name__  # its message can contain what it was given
        raise Failure(f"the keyring of this system refused ({kind}); sign in again with `gateway login`") from None
