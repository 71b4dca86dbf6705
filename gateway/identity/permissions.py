"""What a caller may do in a tenant."""

from collections.abc import Collection

from gateway.domain.identifiers import TenantId
from gateway.domain.keys import Scope
from gateway.domain.principals import Caller, Operator
from gateway.errors import Fault, Forbidden, InvalidBody, NotFound


def require(caller: Caller, tenant: TenantId, *scopes: Scope) -> None:
    """Let pass an operator, and a principal of this tenant whose key has every one of these scopes.

    Raises:
        NotFound: the tenant is not the caller's; it reads as if there were none.
        Forbidden: it is, and a scope is missing.
    """
    if isinstance(caller, Operator):
        return
    if caller.tenant != tenant:
        raise NotFound("not found")
    missing = sorted(set(scopes) - caller.scopes)
    if missing:
        raise Forbidden(f"the key lacks the scope {', '.join(missing)}")


def check_scopes(scopes: Collection[str]) -> frozenset[Scope]:
    """The scopes a new key may have.

    Raises:
        InvalidBody: none is given, one is unknown, or one key would both call tools and approve calls.
    """
    known = {scope.value: scope for scope in Scope}
    faults = [
        Fault(pointer=f"/scopes/{index}", reason=f"unknown scope; known are {', '.join(known)}")
        for index, scope in enumerate(scopes)
        if scope not in known
    ]
    if not scopes:
        faults.append(Fault(pointer="/scopes", reason=f"at least one of {', '.join(known)} is needed"))
    if {Scope.MCP, Scope.APPROVE} <= set(scopes):
        faults.append(
            Fault(pointer="/scopes", reason="mcp and approve cannot be on one key: no caller approves itself")
        )
    if faults:
        raise InvalidBody("the scopes are not valid", faults=faults)
    return frozenset(known[scope] for scope in scopes)
