"""Checks of policy rules before they are stored; all faults are found, each with its pointer."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import msgspec

from gateway.definitions.credential_names import is_count, is_credential_name
from gateway.definitions.policy.conditions import is_pattern
from gateway.definitions.policy.limits import MAX_CONDITION_NUMBER, MAX_RULES_BYTES
from gateway.definitions.policy.paths import is_root
from gateway.domain.json_access import is_number
from gateway.domain.tenancy.limits import MAX_VALUES
from gateway.domain.tenancy.policy import (
    ArgumentCondition,
    ConditionOperator,
    ConditionValue,
    PolicyRule,
    RecordingRule,
)
from gateway.errors import Fault

_TEXTS = frozenset({ConditionOperator.STARTS_WITH})
_PATHS = frozenset({ConditionOperator.INSIDE, ConditionOperator.OUTSIDE})
_NUMBERS = frozenset(
    {ConditionOperator.GREATER, ConditionOperator.LESS, ConditionOperator.AT_LEAST, ConditionOperator.AT_MOST}
)


def find_faults(rules: Sequence[PolicyRule], recorded: Sequence[RecordingRule] = ()) -> Sequence[Fault]:
    """Return the faults of the rules, with pointers below `/rules` and `/recorded_arguments`."""
    faults = [
        Fault(pointer=f"/rules/{position}/when/{place}/value", reason=reason)
        for position, rule in enumerate(rules)
        for place, condition in enumerate(rule.when)
        if (reason := _fault_of(condition))
    ]
    faults += [
        Fault(pointer=f"/recorded_arguments/{position}/{part}/{place}", reason=reason)
        for position, rule in enumerate(recorded)
        for part, pointers in (("keep", rule.keep), ("hash", rule.hash))
        for place, pointer in enumerate(pointers)
        if (reason := _fault_of_pointer(pointer))
    ]
    sized: Mapping[str, Sequence[object]] = {"rules": rules, "recorded_arguments": recorded}
    faults += [
        Fault(pointer=f"/{name}", reason=f"the rules together have more than {MAX_RULES_BYTES} bytes")
        for name, given in sized.items()
        if not faults and len(msgspec.json.encode(given)) > MAX_RULES_BYTES
    ]
    return faults


def _fault_of_pointer(pointer: str) -> str:
    """Return the reason why the argument at the pointer can never be recorded; empty if it can."""
    named = [name for name in pointer.split("/") if is_credential_name(name) and not is_count(name)]
    return f"{named[0]!r} is the name of a credential; credentials are always dropped" if named else ""


def _fault_of(condition: ArgumentCondition) -> str:
    """Return the fault of a condition's value; empty if the value fits the operator."""
    value, operator = condition.value, condition.operator
    if operator is ConditionOperator.IN:
        if not isinstance(value, tuple) or not value:
            return f"`in` needs a list of 1 to {MAX_VALUES} strings, numbers or booleans"
        return next((reason for each in value if (reason := _fault_of_value(each))), "")
    if isinstance(value, tuple):
        return f"`{operator}` needs one value; `in` takes a list"
    return _fault_of_value(value) or next(_faults_of_kind(operator, value), "")


def _fault_of_value(value: ConditionValue) -> str:
    if isinstance(value, str):
        return "" if value.isprintable() else "a string must be printable"
    if is_number(value) and not (isfinite(value) and abs(value) <= MAX_CONDITION_NUMBER):
        return f"a number must be finite and at most {MAX_CONDITION_NUMBER}"
    return ""


def _faults_of_kind(operator: ConditionOperator, value: ConditionValue) -> Iterator[str]:
    if operator in _NUMBERS and not is_number(value):
        yield f"`{operator}` needs a number"
    if operator in _TEXTS and not isinstance(value, str):
        yield f"`{operator}` needs a string"
    if operator in {ConditionOperator.CONTAINS, *_TEXTS} and isinstance(value, str) and not value.strip():
        yield f"`{operator}` needs a string with more than spaces"
    if operator in _PATHS and not (isinstance(value, str) and is_root(value)):
        yield f"`{operator}` needs an absolute, normalised folder such as /tmp, without `..`, %, ?, #, ; or a backslash"
    if operator is ConditionOperator.EXISTS and not isinstance(value, bool):
        yield "`exists` needs true or false"
    if operator is ConditionOperator.MATCHES and not (isinstance(value, str) and is_pattern(value)):
        yield "`matches` needs a pattern that is searched in linear time (no look-around, no back-references)"
