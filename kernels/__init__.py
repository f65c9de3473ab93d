"""Placeholder for kernels."""
