"""What a session is, as data: its phase, prompts, playheads, limits and cancel scopes."""
