"""Exit codes and their meanings; scripts rely on the numbers."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command."""

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
    ExitCode.OK: "done",
    ExitCode.FAILED: "refused by the gateway or failed; a tool call whose result is an error",
    ExitCode.USAGE: "wrong usage, or a setting that is broken",
    ExitCode.UNREACHABLE: "the gateway does not answer at its URL",
    ExitCode.DENIED: "no credential, or one that is not allowed to do this",
    ExitCode.NOT_FOUND: "it does not exist, or is not yours",
    ExitCode.CONFLICT: "it contradicts what is stored: a name that is taken, another version",
    ExitCode.BUSY: "a limit is reached or a part of the gateway is away; try again",
    ExitCode.INTERRUPTED: "interrupted before it was done",
}

_BY_STATUS = {
    401: ExitCode.DENIED,
    403: ExitCode.DENIED,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
    412: ExitCode.CONFLICT,
    429: ExitCode.BUSY,
    503: ExitCode.BUSY,
}


def exit_for_status(status: int) -> ExitCode:
    """Return the exit code for an HTTP status that is not a success."""
    return _BY_STATUS.get(status, ExitCode.FAILED)


def describe_exits() -> str:
    """Return the table of exit codes for `--help`."""
    return "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())
