"""Policy rules: conditions on arguments, paths, and the policy of one primitive."""
