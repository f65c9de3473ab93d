"""Words and their numbers."""

from dataclasses import dataclass, replace

from reverie.models.pocket.simulator.captions import grammar_words, words_of

MAX_TOKENS = 32
PAD = 0
UNKNOWN = 1
_FIRST_WORD = 2


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A prompt as the text encoder takes it.

    Attributes:
        ids: at most `MAX_TOKENS` word numbers; empty for the empty prompt.
        unknown_words: words that are not in the training data, in order; `UNKNOWN` among the ids.
        truncated_at: how many words were kept when there were more than `MAX_TOKENS`, else None.
    """

    ids: tuple[int, ...]
    unknown_words: tuple[str, ...]
    truncated_at: int | None


class Vocabulary:
    """Map words to numbers; the order of `words` is part of the weights."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self._id_of = {word: _FIRST_WORD + i for i, word in enumerate(words)}

    @classmethod
    def of_grammar(cls) -> "Vocabulary":
        """Return the vocabulary of everything that the caption grammar writes."""
        return cls(tuple(grammar_words()))

    def __len__(self) -> int:
        return _FIRST_WORD + len(self.words)

    def encode(self, text: str) -> TokenizedPrompt:
        """Turn a text into numbers; punctuation and case do not matter."""
        words = words_of(text)
        kept = words[:MAX_TOKENS]
        return TokenizedPrompt(
            ids=tuple(self._id_of.get(word, UNKNOWN) for word in kept),
            unknown_words=tuple(word for word in kept if word not in self._id_of),
            truncated_at=MAX_TOKENS if len(words) > MAX_TOKENS else None,
        )

    def remind(self, prompt: TokenizedPrompt, reminder: str) -> TokenizedPrompt:
        """Put words before a prompt, if they fit; its unknown words and truncation stay."""
        ids = (*self.encode(reminder).ids, *prompt.ids)
        return prompt if len(ids) > MAX_TOKENS else replace(prompt, ids=ids)
