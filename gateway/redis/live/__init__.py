"""Attachments of live sources: leases of the replicas that hold them, and requests from one replica to another."""
