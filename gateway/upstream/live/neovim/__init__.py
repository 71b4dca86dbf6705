"""Connector of editors: Neovim, over its RPC socket and with the plugin of `deploy/neovim`."""
