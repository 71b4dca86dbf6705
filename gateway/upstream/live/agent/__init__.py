"""Live sources of kind `agent`: programs that connect to the gateway and offer primitives over one WebSocket."""
