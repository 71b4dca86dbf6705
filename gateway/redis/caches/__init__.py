"""Short-lived values that all replicas share: access tokens, truncated results, single-use ids."""
