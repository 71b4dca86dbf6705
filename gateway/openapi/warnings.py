"""Remarks of the compiler on a document: warnings about lost parts, and notes on blemishes without a loss."""

from gateway.openapi.limits import MAX_WARNINGS


class Warnings:
    """The warnings and notes of one compilation, in the order of discovery; at most 500 distinct ones of each."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._omitted = 0
        self._notes: dict[str, dict[str, None]] = {}
        self._omitted_notes = 0

    def add(self, where: str, what: str) -> None:
        """Add a warning at `where`: a JSON pointer, an operation, or empty for the whole document."""
        text = f"{where}: {what}" if where else what
        if text in self._texts:
            return
        if len(self._texts) < MAX_WARNINGS:
            self._texts[text] = None
        else:
            self._omitted += 1

    def note(self, where: str, what: str) -> None:
        """Add a note: a part of the document that is read differently than it is written, without a loss."""
        if what not in self._notes and len(self._notes) >= MAX_WARNINGS:
            self._omitted_notes += 1
            return
        self._notes.setdefault(what, {})[where] = None

    def texts(self) -> tuple[str, ...]:
        """Return the warnings; if some were omitted, the last one states how often, with repetitions."""
        rest = (f"{self._omitted} further warnings, with repetitions, are omitted",) if self._omitted else ()
        return (*self._texts, *rest)

    def notes(self) -> tuple[str, ...]:
        """Return the notes, each once, with its first position and the number of further ones."""
        rest = (f"{self._omitted_notes} further notes, with repetitions, are omitted",) if self._omitted_notes else ()
        return (*(_place(what, tuple(places)) for what, places in self._notes.items()), *rest)


def _place(what: str, places: tuple[str, ...]) -> str:
    first, more = places[0], len(places) - 1
    if not first:
        return what
    return f"{first}{f' and {more} more' if more else ''}: {what}"
