"""JSON-RPC over HTTP: responses, server-sent events, and cancellation of requests whose client disconnected."""
