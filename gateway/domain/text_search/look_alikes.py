"""Detection of look-alikes: words that mix alphabets, and names that people can mistake for other names."""

import re
from collections.abc import Iterable, Iterator

from gateway.domain.text_search.normalization import fold, without_ascii

_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[A-Za-z]")
_OTHER_SCRIPTS = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u13a0-\u13ff]+")
_FULL_WIDTH = re.compile("[\uff21-\uff5a\U0001d400-\U0001d7ff]{3}")
_SIMILAR_CHARACTERS = str.maketrans("i1|0-.", "lllo__")
_SIMILAR_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def has_mixed_letters(text: str) -> bool:
    """True if a word mixes Latin letters with similar ones of other alphabets, or uses mathematical or wide letters."""
    others = without_ascii(text)
    if _FULL_WIDTH.search(others) is None and _OTHER_SCRIPTS.search(others) is None:  # nearly every search ends here
        return False
    if _FULL_WIDTH.search(text) is not None:
        return True
    return _OTHER_SCRIPTS.search(text) is not None and any(map(_is_mixed, _WORD.findall(text)))


def skeleton(name: str) -> str:
    """Return the skeleton of a name; names that look alike have the same skeleton."""
    found = fold(name).casefold().translate(_SIMILAR_CHARACTERS)
    for pair, letter in _SIMILAR_PAIRS:
        found = found.replace(pair, letter)
    return found


def find_alike(names: Iterable[str], known: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield each name that looks like an earlier or a known name, together with that name."""
    seen = {skeleton(name): name for name in known}
    for name in names:
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            yield name, other


def _is_mixed(word: str) -> bool:
    if word.isascii() or _LATIN.search(word) is None:
        return False
    others = "".join(_OTHER_SCRIPTS.findall(word))
    return bool(others) and fold(others).isalpha()
