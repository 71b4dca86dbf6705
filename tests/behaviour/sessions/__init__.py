"""Tests that share two replicas; a package, so that these end with the last of its tests."""
