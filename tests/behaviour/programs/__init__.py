"""Programs that embed a gateway and use it without servers, or as one person."""
