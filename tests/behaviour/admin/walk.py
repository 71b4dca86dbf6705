"""Requests whose answers have to be what the admin API's own OpenAPI document says."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import jsonschema_rs


class Walk:
    """Asks, and refuses every answer that the document does not foresee."""

    def __init__(self, client: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self._client = client
        self._document = document
        self.seen: set[tuple[str, str, int]] = set()
        self.documented = {(method.upper(), path) for path, item in document["paths"].items() for method in item}

    async def ask(self, method: str, path: str, status: int, **more: Any) -> httpx.Response:
        """One request; the answer has this status and the documented form."""
        answer = await self._client.request(method, path, **more)
        assert answer.status_code == status, (method, path, answer.text)
        template = self._template(path.partition("?")[0])
        responses = self._document["paths"][template][method.lower()]["responses"]
        assert str(status) in responses, f"{method} {template} answered {status}, which is not documented"
        self._check(responses[str(status)], answer)
        self.seen.add((method, template, status))
        return answer

    async def sign_in(self, token: Callable[[str], str]) -> None:
        """A request with an access token for the tenant `acme`."""
        url = str(self._client.base_url.copy_with(path="/t/acme/mcp"))
        answer = await self._client.get(url, headers={"authorization": f"Bearer {token(url)}"})
        assert answer.status_code not in {401, 403}, answer.text

    def _template(self, path: str) -> str:
        paths: list[str] = list(self._document["paths"])
        found = [known for known in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path)]
        return min(found, key=lambda known: known.count("{"))

    def _check(self, response: Mapping[str, Any], answer: httpx.Response) -> None:
        if "content" not in response:
            assert answer.content == b""
            return
        ((media_type, content),) = response["content"].items()
        assert answer.headers["content-type"] == media_type
        for name, header in response.get("headers", {}).items():
            assert name in answer.headers or not header["required"]
        schema = {**content["schema"], "components": self._document["components"]}
        validator = jsonschema_rs.Draft202012Validator(schema, offline=True, validate_formats=True)
        errors = [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(answer.json())]
        assert not errors, errors
