"""PostgreSQL and Redis as child processes of the gateway, used if their URLs are not configured."""
