"""Splits a stream of words into phrases that can be spoken one by one. Pure."""

import re

LONGEST_WORDS = 14
"""A phrase without punctuation ends after so many words."""

CLAUSE_WORDS = 4
"""A comma ends a phrase of at least so many words."""

_SENTENCE = re.compile(r"[.!?…:;]+[\"')\]]*$")
_CLAUSE = re.compile(r",[\"')\]]*$")


class SentenceSplitter:
    """Collects words until they are a sentence, a clause or long enough."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._part = ""  # the beginning of a word

    def add(self, text: str, final: bool) -> list[str]:
        """Add text, and return the phrases that it completes.

        Args:
            text: words, each with the space behind it.
            final: nothing follows, so that the rest is a phrase.
        """
        words = (self._part + text).split(" ")
        self._part = "" if final else words.pop()
        sentences = []
        for word in filter(None, words):
            self._words.append(word)
            if self._is_whole():
                sentences.append(self._take())
        if final and self._words:
            sentences.append(self._take())
        return sentences

    def clear(self) -> None:
        """Drop the unfinished phrase."""
        self._words.clear()
        self._part = ""

    def _is_whole(self) -> bool:
        count, last = len(self._words), self._words[-1]
        clause = count >= CLAUSE_WORDS and _CLAUSE.search(last)
        return bool(_SENTENCE.search(last) or clause) or count >= LONGEST_WORDS

    def _take(self) -> str:
        phrase = " ".join(self._words)
        self._words.clear()
        return phrase
