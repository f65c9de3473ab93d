"""Placeholder for web_client."""
