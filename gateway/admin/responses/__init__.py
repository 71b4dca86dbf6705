"""Models of responses; the OpenAPI document is generated from them."""
