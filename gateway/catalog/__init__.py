"""Every read and change of durable truth, as verbs, one module per noun."""
