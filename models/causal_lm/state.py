"""What a session of a language model is between two units of work."""

from dataclasses import dataclass, field

from torch import Tensor

from reverie.models.causal_lm.cache_pages import CachedTokens
from reverie.models.causal_lm.conversation import DecodedSpan, Message
from reverie.models.causal_lm.sampling import SamplingOptions
from reverie.models.contract.blocks import BlockId
from reverie.models.services.adapters import OFF, Mix


@dataclass(frozen=True, slots=True)
class ChatState:
    """A conversation.

    Attributes:
        prompt: the text of the system message; empty for none.
        messages: the conversation without the system message.
        cached: what the model has read.
        unread: tokens before the answer that the model has not read yet.
        answer: tokens of the answer so far.
        decoded: how far they are decoded to text.
        said: the text that was put out.
        held: text that may be the beginning of a stop string.
        stops: texts that end an answer, as the session asked.
        forgotten: messages that no longer fit the context.
        done: whether the answer is complete, so that the next unit ends it.
        answering: the turn that is being answered; None between answers.
        random: state of the session's generator.
        mix: the active adapters and their strengths; everything cached was read under it.
    """

    prompt: str
    sampling: SamplingOptions
    longest: int
    random: Tensor
    messages: tuple[Message, ...] = ()
    cached: CachedTokens = field(default_factory=CachedTokens)
    unread: tuple[int, ...] = ()
    answer: tuple[int, ...] = ()
    decoded: DecodedSpan = field(default_factory=DecodedSpan)
    said: str = ""
    held: str = ""
    stops: tuple[str, ...] = ()
    forgotten: int = 0
    done: bool = False
    answering: str | None = None
    mix: Mix = OFF

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """The pages of the cache."""
        return self.cached.blocks
