"""The rule for stored secrets of all objects: a change that omits a secret keeps it only for the same receivers.

No response has a secret. Without this rule, an author of changes without knowledge of a secret could redirect it to its
own host.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.refusals import SecretNotKept
from gateway.errors import Fault
from gateway.kinds.members import moved_receivers

_SAME: Mapping[str, str] = MappingProxyType({})


def refuse_moved_secret(
    before: object, after: object, *, remedy: str, pointer: str = "", names: Mapping[str, str] = _SAME
) -> None:
    """Refuse to keep the secret of an object that names another receiver; both are of one declared class.

    `pointer` is the place of the object in the body, and `names` has the names there of members with another name.

    Raises:
        SecretNotKept: a member marked `Shape.RECEIVER` differs; the faults name all that do.
    """
    moved = [names.get(name, name) for name in moved_receivers(before, after)]
    faults = [Fault(pointer=f"{pointer}/{name}", reason=f"names a receiver of the secret: {remedy}") for name in moved]
    if faults:  # guard: secret-receivers
        raise SecretNotKept(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
