"""A realtime session server for interactive streaming generation."""

__version__ = "0.1.0"
