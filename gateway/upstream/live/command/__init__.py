"""Connector of programs that the gateway starts with the operator's permission, and that speak MCP on their standard
streams.
"""
