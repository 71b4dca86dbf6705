"""`gateway watch`: URLs that the gateway polls to detect changed resources."""

from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.updates import WATCH

watch = KindCommands(kind=WATCH).group()
