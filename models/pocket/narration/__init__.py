"""What can be said of a pocket world: facts, questions, sentences, and the narrator's tokens."""
