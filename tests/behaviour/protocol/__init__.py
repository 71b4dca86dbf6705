"""The protocol as clients see it; a package, so that its tests share one gateway."""
