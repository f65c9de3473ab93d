"""The protocol: commands, events, errors, their parsing and their JSON Schema."""
