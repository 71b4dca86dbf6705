"""Outside stores of secrets: files, variables of the gateway, and Vault-compatible servers."""
