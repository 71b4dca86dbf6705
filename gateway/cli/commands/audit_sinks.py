"""`gateway audit sink`: external systems that receive a tenant's audit trail."""

from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.deliveries import SINK

sink = KindCommands(kind=SINK, name="sink", path="audit sink", loss=" with its position in the trail").group()
