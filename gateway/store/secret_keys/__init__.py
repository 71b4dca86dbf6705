"""The secret keys of the installation: which are known, what needs them, and re-encryption under the current one."""
