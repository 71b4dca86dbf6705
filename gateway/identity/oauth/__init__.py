"""Sign-in of people at their tenant's provider, and the authorization server in front of it; without HTTP faces."""
