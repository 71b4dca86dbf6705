"""The promises that the tests name in their docstrings: `python -m tests.promises` prints them with their tests."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
TITLES = {
    "ISO-3": "limits have operator ceilings; no tenant holds more than its share of a replica-wide pool",
    "ISO-6": "the admin API can be bound apart from MCP, with limits of its own",
    "ADM-1": "the admin REST contract: problems, ETags, cursors, limits on what is sent",
    "CFG-1": "manifests of all kinds are applied to a tenant in one transaction; what is equal writes nothing",
    "CFG-2": "a plan names the versions of its objects, holds no secret, and is refused when they have moved",
    "CFG-3": "a set owns what it applied; it takes over and removes nothing else, and changes by hand are reported",
    "CFG-4": "manifests and plans refer to secrets of the machine; generated ones are shown once, in no log",
    "CFG-6": "sources are applied with their documents, which are uploaded by digest or fetched before the transaction",
    "CLI-1": "the command line: exit codes, one-line errors, --json, whole lists",
    "CLI-2": "a terminal shows tables that fit it, colors and relative times; a pipe has whole lines and exact times",
    "CLI-3": "names of objects where ids are, several of them, completed by the shell; each failure is named",
    "CLI-4": "help of a command that changes something has an example that the command accepts",
    "CLI-5": "contexts store addresses, tenants and keys; a key is private to its owner and is never printed",
    "CLN-2": "arguments with exactly one reading are read; ambiguous ones are refused with path and reason",
    "CON-1": "a connection's registry is built on connect and released on disconnect",
    "CON-2": "building is O(1); a tenant's connections share the snapshot",
    "CAL-1": "valid arguments reach the handler unchanged; its result comes back in protocol form",
    "CAL-2": "arguments that do not match the schema: an error result with path and reason, nothing sent",
    "CAL-3": "unknown tool, resource, prompt: the protocol's own error",
    "CAL-4": "a handler that fails costs one call",
    "CAL-5": "malformed, oversized and batched messages: the protocol's own error",
    "OPR-3": "operators are named keys, people and workloads with roles, and every trail names them",
    "OPR-2": "secrets in files are replaced while the gateway serves: passwords, operator and metrics keys",
    "CLN-1": "every listed tool is taken by the clients of the table of limits, or they are named with the reason",
    "CAP-1": "capabilities are declared only when they are there",
    "CAP-2": "listChanged and subscribe are declared and work",
    "ISO-1": "a kept upstream connection serves one tenant and one credential identity",
    "ISO-2": "checking and explaining arguments and answers is bounded before it starts, metered, or killed",
    "DYN-1": "primitives of a live source come when it attaches and go when it detaches",
    "DYN-2": "attachments are apart; a call goes where its primitive came from",
    "DYN-3": "one bad definition costs one primitive, and its author learns why",
    "DYN-6": "a program that connects out offers tools while it is connected",
    "OAS-1": "documents of every version and format, from upload, file or URL",
    "OAS-2": "requests on the wire are as the document describes them",
    "OAS-3": "each operation is ok, degraded or skipped, with its reason",
    "OAS-4": "listed schemas are valid, self-contained and object-rooted",
    "OAS-7": "references outside the document are never fetched",
    "OAS-8": "a document's own examples are accepted, and a choice has one branch that decides or none",
    "OAS-9": "a list has a budget per tool, page and source; what is shortened is reported, and validated in full",
    "OAS-10": "a result has status and chosen headers; where its profile chooses, it is sent once, in selected parts, "
    "or as a summary whose parts are read without loss",
    "PRG-4": "a taken name is refused and the original stays",
    "RES-3": "cursors are opaque, signed, bound to tenant and profile",
    "OPR-1": "every refusal of a known principal is an entry with rule, reason and revision, found by its id",
    "SAF-1": "every tool has a safety level with reasons",
    "SAF-2": "the policy decides about each level",
    "SAF-4": "every call and change is in the audit trail",
    "SAF-5": "rules decide by tool, profile and argument; an explanation shows what would happen to a call",
    "SAF-6": "guardrails check calls and results, built in and by HTTP hook",
    "SAF-7": "a task outlives its request and its replica; its result is sealed, and deleted in time",
    "SAF-8": "the audit trail leaves the system: export, streams, retention, verification elsewhere",
    "SRV-1": "every revision of the protocol is served",
    "SRV-3": "SIGTERM finishes what is in flight and exits 0",
    "SRV-4": "Redis or PostgreSQL away: clean refusals, and back without a restart",
    "TEN-1": "a connection belongs to the tenant of its credential, and the path must agree",
    "TEN-2": "API keys: hashed, prefixed, checksummed, scoped, revocable",
    "IDN-2": "people sign in at their tenant's provider, and the gateway is the issuer of MCP clients in front of it",
    "TEN-3": "limits per tenant and key, with a retry hint",
    "IDN-3": "upstreams get the identity of each caller, also by accounts that users connect once",
    "IDN-4": "access rules decide what keys and people list and use, in every way to a primitive",
    "IDN-5": "keys have two secrets while they are rotated; stored secrets follow the secret keys, or stay elsewhere",
    "TEN-4": "upstream credentials are sealed at rest, write-only and never forwarded from callers",
    "TEN-5": "the attack suite passes, and fails without its guards",
    "PRG-1": "code registers tools, resources and prompts; they are listed and run beside the imported ones",
    "PRG-2": "configuration registers the same at the start, before the first request",
    "PRG-3": "a tenant registers them over REST, persistent, effective on live connections of every replica",
    "PRG-5": "the registration API is fully typed, and the schema is validated at registration",
    "TDF-1": "one strict definition of a tool; what is wrong names its field",
    "TDF-2": "unknown fields and dialects are refused; schemas are stored keyword for keyword",
    "TDF-3": "the registry of tools is a pure store; its listing has the protocol's shape",
    "TDF-4": "contract and registry are covered, branch by branch",
    "TDF-5": "a result that breaks its output schema is an error result, never a protocol failure",
    "RES-1": "resources: text and blobs with a MIME type, size, annotations",
    "RES-2": "URI templates are those of RFC 6570 and match without ambiguity",
    "RES-4": "an update reaches exactly the subscribed, entitled clients, on whichever replica",
    "RES-5": "four ways to report a changed resource",
    "RES-6": "subscriptions end with their session or key, everywhere",
    "PRM-1": "prompt arguments: all missing ones are named",
    "PRM-2": "prompt messages: roles, templates, every kind of content",
    "PRM-3": "values are completed from a list, a prefix search or a lookup",
    "OAS-5": "six query tools and call_endpoint over a document",
    "OAS-6": "refresh proposes, overrides survive, nothing changes unseen",
    "SRV-2": "streams resume on any replica, each event exactly once",
    "SRV-5": "the official conformance suite, through a tenant URL, on two replicas",
    "SRV-6": "deployed with TLS and two replicas, restarted without a failed call",
    "ISO-4": "a stored credential never comes back to an agent in any usual encoding",
    "ISO-5": "private upstreams are permitted per tenant, by the operator",
    "SAF-3": "the approved request is the one that runs, bound by its digest",
    "DYN-4": "handlers answer through small functions; an error's code, message and values reach the client",
    "DYN-5": "another MCP server behind a live source: both eras, progress, cancellation, questions, updates, bounds",
}
PATTERN = re.compile(r"\b(?:ADM|CFG|CLI|CLN|CON|PRG|TDF|CAL|RES|PRM|CAP|OAS|DYN|OPR|SAF|TEN|SRV|ISO|IDN)-\d+\b")


@cache
def all_tests() -> dict[str, str]:
    """Every test function by its address, with its docstring."""
    return {
        f"{path.relative_to(ROOT)}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def tests_by_promise() -> dict[str, list[str]]:
    """The tests that name each promise in their docstrings."""
    found: dict[str, list[str]] = {}
    for test, reported in all_tests().items():
        for promise in sorted(set(PATTERN.findall(reported))):
            found.setdefault(promise, []).append(test)
    return found


def render() -> str:
    """Every promise with its tests, as Markdown."""
    lines: list[str] = []
    for promise, tests in sorted(tests_by_promise().items()):
        lines += [f"## {promise}: {TITLES.get(promise, '')}".rstrip(": "), "", *(f"- `{test}`" for test in tests), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(render())
