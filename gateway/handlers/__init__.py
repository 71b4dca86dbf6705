"""What runs when a primitive is called: one module per kind of handler, behind one port."""
