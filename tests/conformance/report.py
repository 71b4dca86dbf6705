"""Results of the runs as a page for readers."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from tests.conformance.federation import NOT_FEDERATED
from tests.conformance.suites import NEW, OLD, Outcome

PAGE = Path(__file__).parents[2] / "docs/conformance.md"
_TEXT = """# Conformance

The protocol's official suites, run against the URL of a tenant, with its key, on two replicas behind a balancer that
sends every request to the next of them. `python -m tests.conformance.run --write` runs them and writes this page;
`make test` runs them and holds the numbers: also while another tenant works, after a replica was killed, and through
Caddy.

{table}

- Suites: `@modelcontextprotocol/conformance` {old} and {new}, unmodified;
  [preload.mjs](../tests/conformance/preload.mjs) adds the credential to their requests and multiplies their time
  limits by four. SDK behind the gateway: `mcp`
  {sdk}.
- The fixtures are primitives of a tenant, registered through the admin API:
  [fixtures.yaml](../tests/conformance/fixtures.yaml). Those that only code can be are registered by settings:
  [extras.py](../tests/conformance/extras.py). The gateway knows of neither.
- *Passed* counts checks. *Not scored* are failures in scenarios that a revision does not require. Those of the
  extension for [tasks](tasks.md) count here, although the suite does not score them: all {tasks} checks pass. The suite
  has no check of their notifications yet, and skips it.
- Real clients walk the same tenant: the SDK for TypeScript in both eras, the Inspector's command line, and the first
  generation of the SDK for Python. The SDK for TypeScript also walks it on standard streams, through `gateway stdio`.
- The suites speak HTTP only. `make test` also runs what is required of 2025-11-25 and 2026-07-28 through
  [a proxy](../tests/conformance/stdio_proxy.py) that makes each session, and each request without one, a client of
  `gateway stdio --url` on pipes: 78 of 84 and 133 of 152 checks pass. The others examine HTTP itself, which standard
  streams have not: statuses, Host and Origin, and requests that name their revision in a header alone.
- `make test` also runs both at the URL of a tenant that has the fixtures by [federation](federation.md) only: the
  tenant of the fixtures is its MCP server. 83 and 183 checks pass. A tool that ends its stream early ends only the
  stream to the gateway, and these fail:
{federated}
{notes}"""


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a run."""
    lines = [
        "| suite | run | scenarios | passed | floor | failed | warnings | skipped | not scored |",
        "|" + " --- |" * 9,
    ]
    for each in outcomes:
        run = each.run
        cells = [run.version, f"{run.name} (`{' '.join(run.arguments)}`)", each.scenarios, each.passed, run.floor]
        cells += [len(each.failures), len(each.warnings), each.skipped, len(each.unscored)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def write_page(outcomes: Sequence[Outcome]) -> None:
    """Write docs/conformance.md."""
    warned = sorted({f"{each.scenario}: {each.reason}" for outcome in outcomes for each in outcome.warnings})
    notes = "".join(f"- Warning of {reported}\n" for reported in warned)
    federated = "\n".join(dict.fromkeys(f"  - {scenario}: {reason}" for (scenario, _), reason in NOT_FEDERATED.items()))
    tasks = sum(outcome.extended for outcome in outcomes)
    text = _TEXT.format(
        tasks=tasks, table=table(outcomes), old=OLD, new=NEW, sdk=version("mcp"), notes=notes, federated=federated
    )
    PAGE.write_text(text)
