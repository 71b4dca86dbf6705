"""The frozen nouns every other package speaks in; no I/O, no framework."""
