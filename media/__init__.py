"""Placeholder for media."""
