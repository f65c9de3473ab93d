"""Placeholder for gpu_pool."""
