"""Tasks: calls of tools that continue after the response to their request (`io.modelcontextprotocol/tasks`)."""
