"""Messages, stop strings, and what of the cache a changed conversation keeps."""

import pytest
import torch

from reverie.models.causal_lm.cache_pages import CachedTokens
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.causal_lm.config import PAGE_TOKENS
from reverie.models.causal_lm.conversation import Conversation, Message, until_stop


class TestStopStrings:
    """An answer ends before one, and what could be one is held back."""

    @pytest.mark.parametrize(
        ("text", "said", "stopped"),
        [
            ("so it is", "so it is", False),
            ("so it is\n", "so it is", False),
            ("so it is\n\nuser", "so it is", True),
            ("so it is\nand", "so it is\nand", False),
            ("###", "", True),
            ("a #", "a ", False),
        ],
    )
    def test_text_is_said_up_to_it(self, text: str, said: str, stopped: bool) -> None:
        assert until_stop(text, ("\n\n", "###")) == (said, stopped)

    def test_without_one_everything_is_said(self) -> None:
        assert until_stop("a\n", ()) == ("a\n", False)


class TestConversation:
    """Messages become tokens."""

    def test_the_oldest_messages_give_way_and_the_systems_stays(self) -> None:
        _, tokenizer = random_model()
        conversation = Conversation(tokenizer, context=80)
        messages = (
            Message("system", "be brief"),
            Message("user", "one " * 9),
            Message("assistant", "two"),
            Message("user", "three"),
        )
        text = tokenizer.decode(list(conversation.ids(messages, room=20)))
        assert text == "system: be brief\nassistant: two\nuser: three\nassistant:"

    def test_of_a_message_that_is_too_long_the_end_is_read(self) -> None:
        _, tokenizer = random_model()
        ids = Conversation(tokenizer, context=30).ids((Message("user", "x" * 99 + "y"),), room=10)
        assert tokenizer.decode(list(ids)) == "xxxxxxxxy\nassistant:"

    def test_a_chat_template_is_used_where_there_is_one(self) -> None:
        _, tokenizer = random_model()
        tokenizer.chat_template = (
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}"
        )
        ids = Conversation(tokenizer, context=99).ids((Message("user", "hi"),), room=10)
        assert tokenizer.decode(list(ids)) == "<user>hi<assistant>"


class TestCommonTokens:
    """What the cache keeps when the conversation has become another."""

    @pytest.mark.parametrize(
        ("same", "pages", "kept"),
        [
            (0, 0, 0),
            (PAGE_TOKENS - 1, 0, 0),
            (PAGE_TOKENS, 1, PAGE_TOKENS),
            (PAGE_TOKENS + 5, 1, PAGE_TOKENS),
            (2 * PAGE_TOKENS + 3, 2, 2 * PAGE_TOKENS + 3),
        ],
    )
    def test_whole_pages_and_the_tail_behind_them_are_kept(
        self, same: int, pages: int, kept: int
    ) -> None:
        tokens = tuple(range(2 * PAGE_TOKENS + 7))
        cached = CachedTokens(tokens, (1, 2), torch.zeros(7, 4))  # type: ignore[arg-type]
        left = cached.common_with((*tokens[:same], -1))
        assert (len(left.blocks), len(left.tokens)) == (pages, kept)
        assert left.in_tail == (0 if left.tail_tW is None else len(left.tail_tW))
