"""Tables, reports and progress that commands print."""
