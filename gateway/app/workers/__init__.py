"""Several worker processes of one machine behind one port: a supervisor, and a replica in each worker."""
