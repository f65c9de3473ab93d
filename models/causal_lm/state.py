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
        prompt: what the system message says; empty for none.
        messages: what was said, without the system message.
        cached: what the model has read.
        unread: tokens that lead up to the answer and are not read yet.
        answer: tokens of the answer so far.
        spelled: up to where they are text.
        said: of that, what has gone out.
        held: what may be the beginning of a stop string.
        stops: texts that end an answer, as the session asked.
        forgotten: messages that are no longer read.
        done: the answer is complete, and its end is to be said.
        answering: the turn that is being answered; None between answers.
        random: state of the session's generator.
        mix: the adapters in force, and how strong they are; all that is cached was read under it.
    """

    prompt: str
    sampling: SamplingOptions
    longest: int
    random: Tensor
    messages: tuple[Message, ...] = ()
    cached: CachedTokens = field(default_factory=CachedTokens)
    unread: tuple[int, ...] = ()
    answer: tuple[int, ...] = ()
    spelled: DecodedSpan = field(default_factory=DecodedSpan)
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
