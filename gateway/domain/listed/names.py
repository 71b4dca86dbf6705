"""Names under which tools are listed: a function of the stored names of all tools of a tenant, and of nothing else.

A stored name that every known client takes is listed unchanged. In any other, each foreign character becomes `_`; a
digest of the stored name is appended if the result belongs to another tool. Calls find a tool by its stored name, its
listed name, and its name with the digest. So a tool whose listed name changes with a neighbour is still found, unless
another tool has the former name now.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from gateway.domain.listed.limits import MAX_NAME_LENGTH

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Names that every client of `client_limits` takes."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_FIRST = re.compile(r"[A-Za-z_]")
_DIGITS = 8


class ListedNames:
    """The listed names of the tools with these stored names, and the stored names that callers mean."""

    def __init__(self, stored: Iterable[str]) -> None:
        names = frozenset(stored)
        odd = sorted(name for name in names if PLAIN_NAME.fullmatch(name) is None)
        plain = {name: plain_name(name) for name in odd}
        uses = Counter(plain.values())
        marked = _mark(odd, names.union(plain.values()))
        self._listed: Mapping[str, str] = {
            name: marked[name] if plain[name] in names or uses[plain[name]] > 1 else plain[name] for name in odd
        }
        self._stored = {marked[name]: name for name in odd} | {listed: name for name, listed in self._listed.items()}

    def listed(self, name: str) -> str:
        """The name under which the tool with this stored name is listed."""
        return self._listed.get(name, name)

    def stored(self, called: str) -> str | None:
        """The stored name of the tool that is called by another name than its stored one; None for all others."""
        return self._stored.get(called)


def plain_name(name: str) -> str:
    """Return the name with `_` for each foreign character, and before a first one that some client refuses."""
    plain = _FOREIGN.sub("_", name)
    return (plain if _FIRST.match(plain) else "_" + plain)[:MAX_NAME_LENGTH]


def _mark(names: Iterable[str], taken: frozenset[str]) -> Mapping[str, str]:
    """Return each name with a digest of the stored name, within the limit; distinct, and different from `taken`."""
    marked: dict[str, str] = {}
    used = set(taken)
    for name in names:
        text, round_ = name, 0
        while (found := _with_digest(name, text)) in used:
            round_ += 1
            text = f"{name} {round_}"
        used.add(found)
        marked[name] = found
    return marked


def _with_digest(name: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{plain_name(name)[: MAX_NAME_LENGTH - _DIGITS - 1]}_{digest}"


UNCHANGED = ListedNames(())
"""The names of a tenant whose tools all are listed by their stored names."""
