"""Command lines of commit 79130e09 over every kind: create, list, show and delete, or set and show."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.golden.objects import SINGLETONS
from tests.support.documents import pets
from tests.support.primitives import static_tool, template, text_prompt, text_resource

HOST = "https://api.example"
_ROWS = template("docs://rows/{id}", {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command line; `{id}` is the id of the object that the kind's creation printed."""

    kind: str
    verb: str
    line: tuple[str, ...]

    @property
    def name(self) -> str:
        """The kind and the verb."""
        return f"{self.kind} {self.verb}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """The command lines of one kind, in the order in which they run."""

    kind: str
    create: tuple[str, ...]
    of: str = "{id}"
    """The argument that names the object."""
    group: tuple[str, ...] = field(default=())
    create_verb: str = "create"

    def steps(self) -> Iterator[Step]:
        """Yield all but the deletion."""
        group = self.group or (self.kind,)
        for verb, line in (
            ("create", (*group, self.create_verb, *self.create)),
            ("list", (*group, "list")),
            ("show", (*group, "show", self.of)),
        ):
            yield Step(kind=self.kind, verb=verb, line=line)

    @property
    def removal(self) -> Step:
        """The deletion."""
        return Step(kind=self.kind, verb="delete", line=(*(self.group or (self.kind,)), "delete", self.of, "--yes"))


FILES: Mapping[str, Any] = {
    "pets.json": pets(HOST),
    "tool.json": static_tool("say"),
    "resource.json": text_resource("docs://a"),
    "template.json": _ROWS,
    "prompt.json": text_prompt("greet"),
    "access.json": SINGLETONS["access"],
}
"""The files that the command lines name."""


def write_files(write: Any) -> None:
    """Write the files by `write(name, text)`."""
    for name, content in FILES.items():
        write(name, json.dumps(content))


def collections(issuer: str) -> list[Commands]:
    """The collections of a tenant, each after those that it names."""
    secret = ("--name", "vendor", "--place", "bearer", "--origin", HOST, "--secret", "s3cret-of-vendor")
    return [
        Commands(kind="key", create=("agent", "--scope", "mcp")),
        Commands(kind="issuer", create=("corp", issuer, "--admit", "group=engineers"), of="corp"),
        Commands(kind="client", create=("Reports", "--redirect-uri", "https://reports.example/callback")),
        Commands(kind="source", create=("pets", "pets.json"), of="pets", create_verb="add"),
        Commands(kind="live-source", create=("--name", "laptop", "--agent", "--include", "get_*"), of="laptop"),
        Commands(kind="tool", create=("tool.json",), of="say"),
        Commands(kind="resource", create=("resource.json",), of="docs://a"),
        Commands(kind="resource-template", create=("template.json",), of="docs://rows/{{id}}"),
        Commands(kind="prompt", create=("prompt.json",), of="greet"),
        Commands(kind="profile", create=("--name", "readers", "--include-safety", "safe"), of="readers"),
        Commands(kind="credential", create=secret, of="vendor"),
        Commands(kind="webhook", create=("cms",), of="cms"),
        Commands(kind="webhook-endpoint", create=("chat", f"{HOST}/hook", "--kind", "approval.requested"), of="chat"),
        Commands(kind="watch", create=("docs://a", f"{HOST}/a", "--interval", "86400")),
        Commands(
            kind="guardrail",
            create=("--name", "secrets", "--check", "secrets", "--phase", "call", "--action", "block"),
            of="secrets",
        ),
        Commands(
            kind="sink",
            create=("siem", "https", f"{HOST}/in", "--credential", "vendor"),
            of="siem",
            group=("audit", "sink"),
        ),
    ]


def settings() -> list[Step]:
    """The singletons and overrides: set, then show."""
    lines = {
        "override set": ("tool", "set", "get_pet", "--title", "Find a pet"),
        "override show": ("tool", "show", "get_pet"),
        "override list": ("source", "overrides", "pets"),
        "override delete": ("tool", "set", "get_pet", "--reset"),
        "policy set": ("policy", "set", "--moderate", "confirm", "--limit", "burst=80"),
        "policy show": ("policy", "show"),
        "access set": ("access", "set", "access.json"),
        "access show": ("access", "list"),
        "egress set": ("tenant", "egress", "{tenant}", "--allow", "10.0.0.5:8080"),
        "egress show": ("tenant", "egress", "{tenant}"),
        "ceilings set": ("tenant", "ceilings", "{tenant}", "--limit", "burst=900", "--keys", "20"),
        "ceilings show": ("tenant", "ceilings", "{tenant}"),
        "retention set": ("audit", "retention", "set", "400"),
        "retention show": ("audit", "retention", "show"),
    }
    steps: list[Step] = []
    for name, line in lines.items():
        kind, _, verb = name.partition(" ")
        steps.append(Step(kind=kind, verb=verb, line=line))
    return steps


def steps(issuer: str) -> Iterator[Step]:
    """Yield all command lines of a tenant, from its creation to its deletion."""
    tenant = Commands(kind="tenant", create=("{tenant}", "--name", "Acme"), of="{tenant}")
    kinds = collections(issuer)
    yield from tenant.steps()
    for one in kinds:
        yield from one.steps()
    yield from settings()
    for one in reversed(kinds):
        yield one.removal
    yield tenant.removal
