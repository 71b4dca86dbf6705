"""Limits of `gateway connect`: a file and a wait."""

MAX_BYTES = 16 * 1024 * 1024
"""Bytes of a configuration file; that of Claude Code also holds its history, which is several megabytes."""
PROGRAM_S = 30.0
"""Seconds in which a started program lists its tools; the first start of a Python on a slow machine takes ten."""
