"""Placeholder for rtc."""
