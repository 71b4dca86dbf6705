"""The MCP methods, shared by all revisions: lists, calls, resources, prompts, completion."""
