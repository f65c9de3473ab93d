"""Placeholder for engine."""
