"""`gateway profile`: named selections of a tenant's primitives."""

from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.selections import PROFILE

profile = KindCommands(kind=PROFILE).group()
