"""Standard Webhooks: the signer of a delivery."""

import pytest

from gateway.catalog.updates.signatures import is_signed, new_secret, sign
from gateway.domain.updates.webhooks import SigningSecrets

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DELIVERY, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def _signed(
    header: str, signing: SigningSecrets, *, delivery: str = DELIVERY, at: str = AT, body: bytes = BODY
) -> bool:
    return is_signed(header, signing, delivery=delivery, at=at, body=body)


def test_the_known_answer_of_the_specification() -> None:
    """Standard Webhooks: the example of the specification's reference libraries."""
    assert sign(SECRET, delivery=DELIVERY, at=AT, body=BODY) == SIGNATURE


def test_one_good_signature_among_others_is_enough() -> None:
    """Standard Webhooks: a sender that rotates signs with both secrets; other versions are passed by."""
    current = SigningSecrets(current=SECRET)
    assert _signed(SIGNATURE, current)
    assert _signed(f"v1a,xyz v2,abc v1,AAAA {SIGNATURE}", current)
    assert _signed(SIGNATURE, SigningSecrets(current=new_secret(), previous=SECRET))


@pytest.mark.parametrize(
    "header",
    ["", "v1", "v1,", SIGNATURE.removeprefix("v1,"), SIGNATURE.lower(), SIGNATURE[:-4], f"v2{SIGNATURE[2:]}", "v1,é=="],
)
def test_a_wrong_signature_is_refused(header: str) -> None:
    """Ours: nothing but the whole signature of version 1 counts."""
    assert not _signed(header, SigningSecrets(current=SECRET))


def test_a_signature_is_of_one_delivery_alone() -> None:
    """Ours: another id, time, body or secret makes it worthless."""
    signing = SigningSecrets(current=SECRET)
    assert not _signed(SIGNATURE, signing, delivery="msg_x")
    assert not _signed(SIGNATURE, signing, at="1614265331")
    assert not _signed(SIGNATURE, signing, body=BODY + b" ")
    assert not _signed(SIGNATURE, SigningSecrets(current=new_secret()))


def test_a_header_without_end_costs_nothing() -> None:
    """Ours: only so many signatures are looked at."""
    assert not _signed(f"{'v1,AAAA ' * 1000}{SIGNATURE}", SigningSecrets(current=SECRET))


def test_secrets_are_long_and_never_the_same() -> None:
    """Ours: 256 random bits behind a prefix that scanners find."""
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(secret.startswith("whsec_") and len(secret) == 6 + 44 for secret in made)
