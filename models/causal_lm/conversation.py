"""Prompt memory as messages, and the text that comes back as whole characters."""

from dataclasses import dataclass
from typing import Literal

from transformers import PreTrainedTokenizerBase

UNFINISHED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Message:
    """Who said what."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """What of a conversation the model reads.

    Attributes:
        ids: its tokens.
        messages: those that are left, the system's among them.
        dropped: older messages that gave way.
        read: tokens of the newest message that were read, when not even that fits; else None.
    """

    ids: tuple[int, ...]
    messages: tuple[Message, ...]
    dropped: int = 0
    read: int | None = None


@dataclass(frozen=True, slots=True)
class DecodedSpan:
    """Up to where the tokens of an answer have become text.

    Attributes:
        start: what is decoded next begins here: a token's text depends on the one before it.
        end: tokens up to here are text already.
    """

    start: int = 0
    end: int = 0


class Conversation:
    """Between messages and token ids, by the tokenizer's chat template when it has one."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, context: int) -> None:
        """Use a tokenizer; `context` is the most tokens that the model attends to."""
        self.tokenizer, self.context = tokenizer, context

    def ids(self, messages: tuple[Message, ...], room: int) -> tuple[int, ...]:
        """Return the tokens that lead up to the assistant's next words; see `fitted`."""
        return self.fitted(messages, room).ids

    def fitted(self, messages: tuple[Message, ...], room: int) -> PromptTokens:
        """Return what leads up to the assistant's next words, as far as there is room for it.

        When it leaves no `room` for an answer, half of the context at most, the oldest messages
        go, the system's last; of a single message that is too long, the beginning goes.
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
        """Return the whole characters of an answer; one that is unfinished is left out."""
        return self._decoded(ids).rstrip(UNFINISHED)

    def spell(self, ids: tuple[int, ...], spelled: DecodedSpan) -> tuple[str, DecodedSpan]:
        """Return the text that an answer's newest tokens add, once their characters are whole.

        Only the last few tokens are decoded, however long the answer is.
        """
        before = self._decoded(ids[spelled.start : spelled.end])
        whole = self._decoded(ids[spelled.start :])
        if len(whole) <= len(before) or whole.endswith(UNFINISHED):
            return "", spelled
        return whole[len(before) :], DecodedSpan(spelled.end, len(ids))

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
    """Return what of a text may be said, and whether a stop string has ended it.

    What could be the beginning of a stop string is held back until it is clear.
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
