"""Blanking stored credentials out of what upstreams answer: some echo what they were sent."""

import json
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from msgspec.structs import replace

from gateway.domain.requests import Credential, UpstreamAnswer

_SHORTEST_SECRET = 6


def blank(answer: UpstreamAnswer, credentials: Iterable[Credential]) -> UpstreamAnswer:
    """The answer without the credentials: as they are, percent-encoded, inside JSON and in base64."""
    body, content_type = answer.body, answer.content_type
    for credential in credentials:
        for form in _forms(credential):
            secret = form.encode("utf-8", "surrogatepass")
            if secret in body:
                body = body.replace(secret, b"***")
            if form in content_type:
                content_type = content_type.replace(form, "***")
    if body is answer.body and content_type is answer.content_type:
        return answer
    return replace(answer, body=body, content_type=content_type)


def _forms(credential: Credential) -> Iterable[str]:
    """Each way the secret may be written, longest first, so that none is cut inside another."""
    value = credential.value
    if len(value) < _SHORTEST_SECRET:
        return ()
    raw = value.encode("utf-8", "surrogatepass")
    forms = {value, quote(raw, safe=""), quote_plus(raw), json.dumps(value)[1:-1], b64encode(raw).decode()}
    if credential.username is not None:
        forms.add(b64encode(f"{credential.username}:{value}".encode("utf-8", "surrogatepass")).decode())
    return sorted(forms, key=len, reverse=True)
