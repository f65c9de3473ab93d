"""A conversation as tokens, and an answer's tokens as text in whole characters."""

from dataclasses import dataclass
from typing import Literal

from transformers import PreTrainedTokenizerBase

UNFINISHED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens of a conversation that the model reads.

    Attributes:
        ids: its tokens.
        messages: those that fit, including the system message.
        dropped: how many older messages did not fit.
        read: how many tokens of the newest message are read, when not even that fits; else None.
    """

    ids: tuple[int, ...]
    messages: tuple[Message, ...]
    dropped: int = 0
    read: int | None = None


@dataclass(frozen=True, slots=True)
class DecodedSpan:
    """How far the tokens of an answer are decoded to text.

    Attributes:
        start: where decoding starts next, because a token's text depends on the one before it.
        end: tokens before this one are decoded.
    """

    start: int = 0
    end: int = 0


class Conversation:
    """Converts between messages and token ids, with the tokenizer's chat template if it has one."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, context: int) -> None:
        """Use a tokenizer; `context` is the most tokens that the model attends to."""
        self.tokenizer, self.context = tokenizer, context

    def ids(self, messages: tuple[Message, ...], room: int) -> tuple[int, ...]:
        """Return the tokens before the assistant's next answer; see `fitted`."""
        return self.fitted(messages, room).ids

    def fitted(self, messages: tuple[Message, ...], room: int) -> PromptTokens:
        """Return what the model reads before the assistant's next answer.

        It leaves `room` tokens for the answer, half of the context at most: the oldest messages
        are dropped, but never the system message; a single message that is too long loses its
        beginning.
        """
        limit = self.context - min(room, self.context // 2)
        dropped = 0
        while len(ids := self._rendered(messages)) > limit:
            oldest = next((i for i, m in enumerate(messages[:-1]) if m.role != "system"), None)
            if oldest is None:
                return PromptTokens(ids[-limit:], messages, dropped, limit)
            messages = messages[:oldest] + messages[oldest + 1 :]
            dropped += 1
        return PromptTokens(ids, messages, dropped)

    def text(self, ids: tuple[int, ...]) -> str:
        """Return the whole characters of an answer; an unfinished last one is left out."""
        return self._decoded(ids).rstrip(UNFINISHED)

    def decode(self, ids: tuple[int, ...], decoded: DecodedSpan) -> tuple[str, DecodedSpan]:
        """Return the text that an answer's newest tokens add, once their characters are whole.

        Only the last few tokens are decoded, however long the answer is.
        """
        before = self._decoded(ids[decoded.start : decoded.end])
        whole = self._decoded(ids[decoded.start :])
        if len(whole) <= len(before) or whole.endswith(UNFINISHED):
            return "", decoded
        return whole[len(before) :], DecodedSpan(decoded.end, len(ids))

    def _decoded(self, ids: tuple[int, ...]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def _rendered(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        turns = [{"role": message.role, "content": message.text} for message in messages]
        if self.tokenizer.chat_template:
            text = self.tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
            return tuple(self.tokenizer.encode(str(text), add_special_tokens=False))
        lines = "".join(f"{turn['role']}: {turn['content']}\n" for turn in turns)
        return tuple(self.tokenizer.encode(f"{lines}assistant:"))


def until_stop(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    """Return the part of a text that may be put out, and whether a stop string has ended it.

    A possible beginning of a stop string is held back until it is complete or ruled out.
    """
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    if found:
        return text[: min(found)], True
    held = max(
        (
            length
            for stop in stops
            for length in range(1, min(len(stop), len(text) + 1))
            if text.endswith(stop[:length])
        ),
        default=0,
    )
    return text[: len(text) - held], False
