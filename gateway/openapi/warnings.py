"""Warnings about parts of a document that the compiler corrected or ignored: the first 500 distinct warnings."""

_MAX_WARNINGS = 500


class Warnings:
    """The warnings of one compilation, in the order of discovery."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._omitted = 0

    def add(self, where: str, what: str) -> None:
        """Add a warning at `where`: a JSON pointer, an operation, or empty for the whole document."""
        text = f"{where}: {what}" if where else what
        if text in self._texts:
            return
        if len(self._texts) < _MAX_WARNINGS:
            self._texts[text] = None
        else:
            self._omitted += 1

    def texts(self) -> tuple[str, ...]:
        """Return the warnings; if some were omitted, the last one states how often, with repetitions."""
        rest = (f"{self._omitted} further warnings, with repetitions, are omitted",) if self._omitted else ()
        return (*self._texts, *rest)
