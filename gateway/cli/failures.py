"""How a command says that it could not do what it was asked."""

from collections.abc import Sequence
from typing import cast

import click

from gateway.cli.exit_codes import ExitCode
from gateway.errors import BrokenSetting, Fault, GatewayError


class Failure(Exception):
    """One line for standard error, the faults behind it, and the exit code."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED, *, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.message = one_line(message)
        self.exit_code = exit_code
        self.faults = tuple(faults)

    def show(self) -> None:
        """Write the line and one more for each fault to standard error."""
        click.echo(f"gateway: {self.message}", err=True)
        for fault in self.faults:
            if len(self.faults) > 1 or not _is_said(fault, self.message):
                click.echo(f"  {describe_fault(fault)}", err=True)


def one_line(text: str) -> str:
    """The text without line breaks and control characters, which a hostile answer may hold."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _is_said(fault: Fault, message: str) -> bool:
    """Whether the message says all that the fault says."""
    place = [f"{what} {number}" for what, number in (("line", fault.line), ("column", fault.column)) if number]
    return all(part in message for part in (one_line(fault.reason), fault.pointer, *place))


def describe_fault(fault: Fault) -> str:
    """Where and why, on one line."""
    place = fault.pointer or "/"
    if fault.line is not None:
        place += f" (line {fault.line}" + (f", column {fault.column})" if fault.column is not None else ")")
    return one_line(f"{place}: {fault.reason}")


def failure_of(error: GatewayError) -> Failure:
    """The failure that an error raised in this process is to whoever started it."""
    code = ExitCode.USAGE if isinstance(error, BrokenSetting) else ExitCode.FAILED
    return Failure(error.message, code, faults=error.faults)


def failure_from_any(error: Exception) -> Failure:
    """The failure that ends a command, whatever was raised."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, click.ClickException):
        return Failure(error.format_message(), ExitCode.USAGE)
    return Failure(str(error) if isinstance(error, OSError) else f"unexpected {type(error).__name__}: {error}")


def first_leaf(error: BaseException) -> BaseException:
    """What really went wrong, out of the groups that task groups wrap around it; ours before others'."""
    leaves = _leaves(error)
    return next((leaf for leaf in leaves if isinstance(leaf, Failure | GatewayError)), leaves[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
