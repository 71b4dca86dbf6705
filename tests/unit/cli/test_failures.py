"""Text of failures."""

import pytest

from gateway.app.exception_leaves import first_leaf
from gateway.cli.exit_codes import MEANINGS, ExitCode, describe_exits
from gateway.cli.failures import Failure, describe_fault, failure_of, one_line
from gateway.errors import BrokenSetting, EmbeddedServerFailed, Fault, GatewayError


def test_a_failure_is_one_line_and_one_for_each_fault(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: errors go to standard error, one line each, with pointer, line and column."""
    faults = [Fault(pointer="/paths", reason="no\nobject", line=3, column=7), Fault(pointer="", reason="odd", line=1)]

    Failure("it is\nbroken\x1b[0m", faults=faults).show()

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "gateway: it is broken\\x1b[0m",
        "  /paths (line 3, column 7): no object",
        "  / (line 1): odd",
    ]


def test_a_fault_of_the_first_line_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: one fault is one line; several are listed, also the one that the line begins with."""
    first, second = Fault(pointer="/slug", reason="required"), Fault(pointer="/x", reason="unknown field")

    Failure("the body at /slug: required", faults=[first]).show()
    Failure("broken at line 2, column 1: odd", faults=[Fault(pointer="", reason="odd", line=2, column=1)]).show()
    Failure("the body at /slug: required (and 1 more)", faults=[first, second]).show()

    assert capsys.readouterr().err.splitlines() == [
        "gateway: the body at /slug: required",
        "gateway: broken at line 2, column 1: odd",
        "gateway: the body at /slug: required (and 1 more)",
        "  /slug: required",
        "  /x: unknown field",
    ]


def test_a_broken_setting_is_wrong_usage_and_a_broken_server_a_failure() -> None:
    """Ours: starting with a broken setting has its own exit code."""
    assert failure_of(BrokenSetting("x")).exit_code is ExitCode.USAGE
    assert failure_of(EmbeddedServerFailed("x")).exit_code is ExitCode.FAILED


def test_an_error_is_found_in_nested_groups() -> None:
    """Ours: task groups around an error do not hide it."""
    wanted = BrokenSetting("port taken")
    group = BaseExceptionGroup("g", [ValueError("noise"), ExceptionGroup("h", [wanted])])

    assert first_leaf(group, Failure, GatewayError) is wanted
    assert isinstance(first_leaf(ExceptionGroup("g", [ValueError("only")])), ValueError)


def test_every_exit_code_is_explained_in_the_help() -> None:
    """Ours: exit codes are documented."""
    assert set(MEANINGS) == set(ExitCode)
    assert len(describe_exits().splitlines()) == len(ExitCode)


def test_a_fault_without_a_place_points_at_the_whole() -> None:
    """RFC 6901: the empty pointer is the document itself."""
    assert describe_fault(Fault(pointer="", reason="is empty")) == "/: is empty"
    assert one_line(" a \n b ") == "a b"
