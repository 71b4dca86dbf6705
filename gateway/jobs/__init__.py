"""Background jobs: every replica looks for due jobs every second, and each job runs on one replica."""
