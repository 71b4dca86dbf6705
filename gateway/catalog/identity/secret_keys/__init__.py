"""Secret keys of the installation: the check at a start, their state, and the re-encryption under the current one."""
