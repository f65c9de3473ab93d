"""Classifier-free guidance: its calls (`calls`), its policies, and their choice (`select`)."""
