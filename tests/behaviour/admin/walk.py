"""Requests whose responses must match the admin API's own OpenAPI document."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import httpx
import jsonschema_rs
import orjson

_REFERENCE = re.compile('"#/components/schemas/([^"]+)"')


class Walk:
    """Asks, and refuses every answer that the document does not foresee."""

    def __init__(self, client: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self._client = client
        self._document = document
        self.seen: set[tuple[str, str, int]] = set()
        self.operations: dict[str, str] = {}
        """The operation of each request, by the id in its response, which the entries of the trail have too."""
        self.secrets: set[str] = set()
        """The secrets that were sent or received."""
        self.documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
        self._patterns: dict[str, re.Pattern[str]] = {
            path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in document["paths"]
        }
        self._validators: dict[tuple[str, str, int], jsonschema_rs.Draft202012Validator] = {}

    async def ask(self, method: str, path: str, status: int, **more: Any) -> httpx.Response:
        """One request; the answer has this status and the documented form."""
        answer = await self._client.request(method, path, **more)
        assert answer.status_code == status, (method, path, answer.text)
        template = self._template(path.partition("?")[0])
        responses = self._document["paths"][template][method.lower()]["responses"]
        assert str(status) in responses, f"{method} {template} answered {status}, which is not documented"
        self._check((method, template, status), responses[str(status)], answer)
        for members in (more.get("json"), answer.json() if status in {200, 201} and answer.content else None):
            self.secrets |= set(_secrets_of(members))
        self.operations[answer.headers["x-request-id"]] = f"{method} {template}"
        self.seen.add((method, template, status))
        return answer

    async def sign_in(self, token: Callable[[str], str]) -> None:
        """A request with an access token for the tenant `acme`."""
        url = str(self._client.base_url.copy_with(path="/t/acme/mcp"))
        answer = await self._client.get(url, headers={"authorization": f"Bearer {token(url)}"})
        assert answer.status_code not in {401, 403}, answer.text

    def _template(self, path: str) -> str:
        found = [known for known, pattern in self._patterns.items() if pattern.fullmatch(path)]
        return min(found, key=lambda known: known.count("{"))

    def _schemas_of(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schemas to which one refers: compiling all of them takes 10 ms."""
        found, left = dict[str, Any](), [schema]
        while left:
            names = set(_REFERENCE.findall(orjson.dumps(left.pop()).decode())) - found.keys()
            found |= {name: self._document["components"]["schemas"][name] for name in names}
            left += [found[name] for name in names]
        return found

    def _check(self, route: tuple[str, str, int], response: Mapping[str, Any], answer: httpx.Response) -> None:
        if "content" not in response:
            assert answer.content == b""
            return
        ((media_type, content),) = response["content"].items()
        assert answer.headers["content-type"] == media_type
        for name, header in response.get("headers", {}).items():
            assert name in answer.headers or not header["required"]
        if (validator := self._validators.get(route)) is None:
            schema = {**content["schema"], "components": {"schemas": self._schemas_of(content["schema"])}}
            validator = jsonschema_rs.Draft202012Validator(schema, offline=True, validate_formats=True)
            self._validators[route] = validator
        errors = [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(answer.json())]
        assert not errors, errors


def _secrets_of(members: object) -> Iterator[str]:
    """The texts that a request or response shows once, or never."""
    if isinstance(members, dict):
        known = cast("dict[str, Any]", members)
        named = (known.get(name) for name in ("key", "secret", "value", "password", "client_secret"))
        stored: object = known.get("credentials")
        of_schemes = cast("dict[str, Any]", stored).values() if isinstance(stored, dict) else ()
        yield from (text for text in (*named, *of_schemes) if isinstance(text, str))
