"""The session's prompt: the texts that make it up, kept for as long as the session lasts."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class PromptMemory:
    """The prompt in effect, as the texts that it was built from, oldest first.

    Blank text counts as empty. The whole never exceeds `limit_chars`: when an addition does not
    fit, the oldest texts are dropped. A single text over the limit is refused before it gets here.
    """

    limit_chars: int
    texts: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """The prompt as a model reads it."""
        return " ".join(self.texts)

    def replaced(self, text: str) -> "PromptMemory":
        """Return the memory with this text alone."""
        return replace(self, texts=()).appended(text)

    def appended(self, text: str) -> "PromptMemory":
        """Return the memory with one more text; blank text adds nothing."""
        said = text.strip()
        if not said:
            return self
        assert len(said) <= self.limit_chars, "a text over the limit was let through"
        texts = (*self.texts, said)
        while len(" ".join(texts)) > self.limit_chars:
            texts = texts[1:]
        return replace(self, texts=texts)
