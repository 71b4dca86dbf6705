"""`python -m examples.provider URL`: a program that offers the notes of its folder to a tenant (GATEWAY_KEY)."""

import os
import sys
from pathlib import Path

from gateway.provide import Provider, ProviderContext

provider = Provider(sys.argv[1], os.environ["GATEWAY_KEY"], source="notes", title="Notes of a folder")


@provider.tool(annotations={"readOnlyHint": True})
def count_words(name: str, context: ProviderContext) -> dict[str, int]:
    """Count the words of a note, line by line."""
    lines = Path(Path(name).name).read_text().splitlines()
    for number, _ in enumerate(lines, start=1):
        context.wait(context.progress(number, len(lines)))
    return {"lines": len(lines), "words": sum(len(line.split()) for line in lines)}


@provider.resource("notes://index")
def index() -> str:
    """List the notes."""
    return "\n".join(sorted(path.name for path in Path().glob("*.txt")))


if __name__ == "__main__":
    provider.run()
