"""What a block sees, against the rule in tokens."""

from hypothesis import assume, given
from hypothesis import strategies as st

from reverie.models.wan.config import CausalConfig
from reverie.models.wan.window import kept, seen_past


class TokenCache:
    """The public rule, a slot a frame: two ends, a roll when the window is full."""

    def __init__(self, local: int, sink: int) -> None:
        self.local, self.sink = local, sink
        self.slots: list[int | None] = [None] * local
        self.global_end = self.local_end = 0

    def call(self, start: int, new: int) -> list[int | None]:
        """Write frames start .. start + new, and return what is attended to."""
        end = start + new
        evicted = 0
        if end > self.global_end and new + self.local_end > self.local:
            evicted = new + self.local_end - self.local
            keep = self.local_end - evicted - self.sink
            moved = self.slots[self.sink + evicted : self.sink + evicted + keep]
            self.slots[self.sink : self.sink + keep] = moved
        self.local_end += end - self.global_end - evicted
        self.slots[self.local_end - new : self.local_end] = list(range(start, end))
        self.global_end = end
        return self.slots[max(0, self.local_end - self.local) : self.local_end]


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
        cache, start = TokenCache(config.local, sink), 0
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
