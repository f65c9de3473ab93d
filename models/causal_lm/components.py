"""What a loaded language model consists of."""

from dataclasses import dataclass

from transformers import PreTrainedModel

from reverie.models.causal_lm.cache_layout import CacheLayout
from reverie.models.causal_lm.conversation import Conversation
from reverie.models.services.adapters import NO_ADAPTERS, Adapters


@dataclass(frozen=True, slots=True)
class ChatComponents:
    """A language model, its tokenizer and what ends an answer.

    Attributes:
        layout: of a token in its cache.
        ends: tokens that end an answer.
        stops: texts that end it.
        adapters: LoRAs that sessions can choose.
    """

    model: PreTrainedModel
    conversation: Conversation
    layout: CacheLayout
    ends: frozenset[int]
    stops: tuple[str, ...] = ()
    adapters: Adapters = NO_ADAPTERS
