"""Background jobs: every replica polls for due jobs every second, and each job runs on one replica."""
