"""The networks of Oasis: the transformer and the picture codec."""
