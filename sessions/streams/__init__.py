"""The input and output streams of a session: pictures, sound, text and speech."""
