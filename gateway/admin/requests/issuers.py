"""Request models of issuers: the fields of the gateway's clients, and a check of rules that needs what was sent."""

from collections.abc import Sequence

from gateway.domain.tenancy.issuers import ManagedIssuer
from gateway.errors import Fault, InvalidBody
from gateway.kinds.members import settable
from gateway.web.kinds.annotations import Fields, sent_fields
from gateway.web.models import BodyModel

CLIENTS: Fields = sent_fields([one for one in settable(ManagedIssuer) if one.name in {"sign_in", "introspection"}])
"""The fields of the gateway's own clients in requests about issuers."""
_CONDITIONS = frozenset({"group", "scope", "subject"})


def refuse_null_conditions(rules: Sequence[BodyModel]) -> None:
    """Refuse a rule whose only conditions are null, such as one from a template without a value: it admits all people.

    A rule that admits all people has no condition, or all of them are null, as responses show it.

    Raises:
        InvalidBody: there is such a rule; the faults name the conditions.
    """
    faults = [
        Fault(pointer=f"/rules/{index}/{name}", reason="must not be the only condition if it is null; leave it out")
        for index, rule in enumerate(rules)
        if not any((sent := {name: rule.sent()[name] for name in _CONDITIONS & rule.sent().keys()}).values())
        and sent.keys() != _CONDITIONS
        for name in sorted(sent)
    ]
    if faults:  # guard: issuer-null-conditions
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
