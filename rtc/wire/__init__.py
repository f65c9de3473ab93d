"""What the server and the Python client share: binary framing, strict JSON, and errors."""
