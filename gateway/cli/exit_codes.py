"""What each exit code means; scripts rely on the numbers."""

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    DENIED = 4
    NOT_FOUND = 5
    CONFLICT = 6
    BUSY = 7
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done",
    Exit.FAILED: "refused by the gateway or failed; a tool call whose result is an error",
    Exit.USAGE: "wrong usage, or a setting that is broken",
    Exit.UNREACHABLE: "the gateway does not answer at its URL",
    Exit.DENIED: "no credential, or one that is not allowed to do this",
    Exit.NOT_FOUND: "it does not exist, or is not yours",
    Exit.CONFLICT: "it contradicts what is stored: a name that is taken, another version",
    Exit.BUSY: "a limit is reached or a part of the gateway is away; try again",
    Exit.INTERRUPTED: "interrupted before it was done",
}

_BY_STATUS = {
    401: Exit.DENIED,
    403: Exit.DENIED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    429: Exit.BUSY,
    503: Exit.BUSY,
}


def exit_for_status(status: int) -> Exit:
    """The exit code for an HTTP status that is not a success."""
    return _BY_STATUS.get(status, Exit.FAILED)


def describe_exits() -> str:
    """The table of exit codes, as `--help` shows it."""
    return "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())
