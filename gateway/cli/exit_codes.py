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
    DIFFERENT = 8
    SOME_FAILED = 9
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "the gateway refused the request, the command failed, or the called tool returned an error",
    ExitCode.USAGE: "wrong usage or an invalid setting",
    ExitCode.UNREACHABLE: "the gateway does not respond at its URL",
    ExitCode.DENIED: "credential missing or not sufficient",
    ExitCode.NOT_FOUND: "not found, or not visible to this credential",
    ExitCode.CONFLICT: "conflict with the stored state: the name is taken, or the version has changed",
    ExitCode.BUSY: "a limit is reached or a dependency of the gateway is unavailable; retry later",
    ExitCode.DIFFERENT: "the manifests and the gateway differ (`diff`)",
    ExitCode.SOME_FAILED: "some of several objects or tenants failed, and others did not",
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
