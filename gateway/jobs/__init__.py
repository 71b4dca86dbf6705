"""Background jobs: due work is looked for every second, and each piece runs on one replica."""
