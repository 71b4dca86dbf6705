"""Two replicas as clients see them; a package, so that its tests share both."""
