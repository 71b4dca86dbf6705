"""`gateway guardrail`: checks of a tenant's calls and results."""

from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.selections import GUARDRAIL

guardrail = KindCommands(kind=GUARDRAIL).group()
