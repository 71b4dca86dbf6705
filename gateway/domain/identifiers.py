"""Opaque prefixed identifiers, and their random generator `mint`."""

import re
import secrets
from typing import NewType

TenantId = NewType("TenantId", str)
KeyId = NewType("KeyId", str)
SourceId = NewType("SourceId", str)
OperationId = NewType("OperationId", str)
SecretId = NewType("SecretId", str)
AuditId = NewType("AuditId", str)
PrimitiveId = NewType("PrimitiveId", str)
ProfileId = NewType("ProfileId", str)
CredentialId = NewType("CredentialId", str)
WebhookId = NewType("WebhookId", str)
WatchId = NewType("WatchId", str)
OverrideId = NewType("OverrideId", str)
LiveSourceId = NewType("LiveSourceId", str)
ApprovalId = NewType("ApprovalId", str)
GuardrailId = NewType("GuardrailId", str)
TaskId = NewType("TaskId", str)
WebhookEndpointId = NewType("WebhookEndpointId", str)
DeliveryId = NewType("DeliveryId", str)
AuditSinkId = NewType("AuditSinkId", str)
IssuerId = NewType("IssuerId", str)
SignInId = NewType("SignInId", str)
ConsentId = NewType("ConsentId", str)
AccountId = NewType("AccountId", str)
OperatorKeyId = NewType("OperatorKeyId", str)
OperatorGrantId = NewType("OperatorGrantId", str)

INSTALLATION = TenantId("_installation")
"""The owner of operator keys, of issuers of operators and of the trail of the installation.

It has a row among the tenants, which no list has. Its id and its slug `*` are in no path, because no slug can have such
characters.
"""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 20
_MINTED = re.compile(rf"[a-z]{{3,4}}_[0-9a-z]{{{_LENGTH}}}")


def mint(prefix: str) -> str:
    """Return a new id such as `src_4k…`: the prefix and 100 random bits in Crockford's base 32."""
    return f"{prefix}_{''.join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))}"


def is_minted(name: str) -> bool:
    """True if the text has the form of an id. No object is created under such a name."""
    return _MINTED.fullmatch(name) is not None


def crockford(data: bytes) -> str:
    """Return the last part of an id that is derived from a digest of at least 13 bytes."""
    number = int.from_bytes(data[:13])
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in range(_LENGTH))


def new_issuer_id() -> IssuerId:
    return IssuerId(mint("iss"))


def new_sign_in_id() -> SignInId:
    return SignInId(mint("sgn"))


def new_grant_id() -> KeyId:
    """Return the id of a new grant, which is the credential of the access tokens issued under it."""
    return KeyId(mint("gnt"))


def is_grant_id(credential: str) -> bool:
    """True for the id of a grant, as opposed to that of a key or a person."""
    return credential.startswith("gnt_")


def new_consent_id() -> ConsentId:
    return ConsentId(mint("cns"))


def new_account_id() -> AccountId:
    return AccountId(mint("acc"))


def new_source_id() -> SourceId:
    return SourceId(mint("src"))


def new_operation_id() -> OperationId:
    return OperationId(mint("opr"))


def new_secret_id() -> SecretId:
    return SecretId(mint("sec"))


def new_approval_id() -> ApprovalId:
    return ApprovalId(mint("apr"))


def new_task_id() -> TaskId:
    """Return a new id with 192 random bits, because clients present it to read a result."""
    return TaskId(f"tsk_{secrets.token_urlsafe(24)}")


def new_delivery_id() -> DeliveryId:
    return DeliveryId(mint("msg"))
