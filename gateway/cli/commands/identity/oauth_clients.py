"""`gateway client`: clients of a tenant's authorization server."""

from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.identity import CLIENT

client = KindCommands(kind=CLIENT, loss=" with the consents to it and its grants").group()
