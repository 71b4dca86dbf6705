"""MCP methods, the same in every revision: lists, calls, resources, prompts, completion."""
