"""PostgreSQL and Redis as child processes of the gateway, for when no URL of either is configured."""
