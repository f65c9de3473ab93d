"""Wan's checkpoints: public layouts and configurations, LoRAs, and loading them onto a device."""
