"""PostgreSQL and Redis as children of this process, for when no URL of either is configured."""
