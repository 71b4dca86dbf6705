"""Failures of commands: their message, their faults and their exit code."""

from collections.abc import Sequence

import click

from gateway.cli.exit_codes import ExitCode
from gateway.cli.output.printing import echo, visible
from gateway.errors import BrokenSetting, Fault, GatewayError, Unavailable


class Failure(Exception):
    """A failure: one line for standard error, its faults, the exit code, and after which time a retry may succeed.

    `is_suggested` is true if near names were searched already.
    """

    def __init__(
        self,
        message: str,
        exit_code: ExitCode = ExitCode.FAILED,
        *,
        faults: Sequence[Fault] = (),
        retry_s: int | None = None,
        is_suggested: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_s = retry_s
        self.is_suggested = is_suggested
        self.message = one_line(message)
        self.exit_code = exit_code
        self.faults = tuple(faults)

    def show(self) -> None:
        """Write the message and the faults to standard error, except a single fault that the message contains."""
        echo(f"gateway: {self.message}", err=True)
        for fault in self.faults:
            if len(self.faults) > 1 or not _is_described(fault, self.message):
                echo(f"  {describe_fault(fault)}", err=True)


def one_line(text: str) -> str:
    """Put text on one line, and make control characters visible, which a hostile response can contain."""
    return " ".join(visible(text).split())


def _is_described(fault: Fault, message: str) -> bool:
    """True if the message contains all parts of the fault."""
    position = [f"{what} {number}" for what, number in (("line", fault.line), ("column", fault.column)) if number]
    return all(part in message for part in (one_line(fault.reason), fault.pointer, *position))


def describe_fault(fault: Fault) -> str:
    """Return the position and the reason of a fault on one line."""
    label = fault.pointer or "/"
    if fault.line is not None:
        label += f" (line {fault.line}" + (f", column {fault.column})" if fault.column is not None else ")")
    return one_line(f"{label}: {fault.reason}")


def failure_of(error: GatewayError) -> Failure:
    """Convert an error that was raised in this process to a failure."""
    code = ExitCode.USAGE if isinstance(error, BrokenSetting) else ExitCode.FAILED
    message = error.cause if isinstance(error, Unavailable) else error.message
    return Failure(message, code, faults=error.faults)


def failure_from_any(error: Exception) -> Failure:
    """Convert any exception to the failure that ends the command."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, click.ClickException):
        return Failure(error.format_message(), ExitCode.USAGE)
    return Failure(str(error) if isinstance(error, OSError) else f"unexpected {type(error).__name__}: {error}")
