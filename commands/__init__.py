"""What `reverie` can be told: a module a command, each with its grammar and what it does."""
