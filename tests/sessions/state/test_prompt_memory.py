"""What is kept of a prompt."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.sessions.state.prompt_memory import PromptMemory


def test_replacing_forgets_what_was_said_before() -> None:
    assert PromptMemory(100).replaced("a lake").replaced("a city").whole == "a city"


def test_appending_adds_to_what_was_said() -> None:
    assert PromptMemory(100).replaced("a lake").appended("at night").whole == "a lake at night"


def test_blank_text_is_empty() -> None:
    assert PromptMemory(100).replaced("a lake").replaced(" \n\t ").whole == ""


def test_appending_blank_text_changes_nothing() -> None:
    memory = PromptMemory(100).replaced("a lake")
    assert memory.appended("  ") == memory


def test_the_oldest_texts_are_forgotten_when_the_whole_grows_too_long() -> None:
    memory = PromptMemory(11).replaced("aaaa").appended("bbbb").appended("cccc")
    assert memory.whole == "bbbb cccc"


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=20)), max_size=30))
@settings(deadline=None)
def test_the_whole_never_exceeds_its_limit(said: list[tuple[bool, str]]) -> None:
    memory = PromptMemory(20)
    for append, text in said:
        memory = memory.appended(text) if append else memory.replaced(text)
        assert len(memory.whole) <= 20
