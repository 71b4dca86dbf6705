"""The client side of providers, behind `gateway.provide`: the connection to a gateway, and functions as primitives."""
