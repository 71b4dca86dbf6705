"""Calls as tasks; a package, so that its tests share one gateway."""
