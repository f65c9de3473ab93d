"""What a block sees, against the rule in tokens."""

from bare_wan import SlotCache
from hypothesis import assume, given
from hypothesis import strategies as st

from reverie.models.wan.config import T2V_1_3B, CausalConfig
from reverie.models.wan.description import wan_spec
from reverie.models.wan.window import kept, seen_past


class TestWindow:
    """Frames by their numbers."""

    @given(
        block=st.integers(1, 4),
        more=st.integers(0, 9),
        sink=st.integers(0, 4),
        blocks=st.integers(1, 12),
        alone=st.booleans(),
    )
    def test_a_block_sees_what_the_rule_in_tokens_lets_it_see(
        self, block: int, more: int, sink: int, blocks: int, alone: bool
    ) -> None:
        config = CausalConfig(block=block, local=sink + block + more, sink=sink)
        cache, start = SlotCache(config.local, sink), 0
        window: tuple[int, ...] = ()
        for index in range(blocks):
            new = 1 if alone and not index else block
            made = tuple(range(start, start + new))
            # Before the sink is full the public rule would move what is not there yet.
            assume(cache.local_end >= sink or cache.local_end + new <= config.local)
            noisy, clean = cache.call(start, new), cache.call(start, new)
            assert list(seen_past(window, new, config)) + list(made) == noisy == clean
            window = kept(window, made, config)
            assert list(window) == clean
            start += new


@given(
    block=st.integers(1, 4),
    more=st.integers(0, 9),
    sink=st.integers(0, 4),
    recache=st.booleans(),
)
def test_a_description_of_any_window_holds(block: int, more: int, sink: int, recache: bool) -> None:
    causal = CausalConfig(block=block, local=sink + block + more, sink=sink, recache=recache)
    spec = wan_spec(T2V_1_3B, causal, (60, 104))
    spec.validate()
    assert spec.loops[0].window_blocks >= causal.local
