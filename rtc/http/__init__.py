"""HTTP: connections with deadlines, JSON bodies, and routes for sessions, recordings, uploads."""
