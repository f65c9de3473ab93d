"""Placeholder for sessions."""
