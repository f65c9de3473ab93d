"""Recordings: their catalogue and folder, and the writers of one recording."""
