"""Arguments, options, declarations and documents that commands read."""
