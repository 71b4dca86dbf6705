"""Commands against a gateway; a package, so that its tests share that gateway."""
