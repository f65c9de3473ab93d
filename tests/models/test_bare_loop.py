"""The yardstick, on the stub."""

from stub_model import StubFamily

from reverie.models.bare_loop import BareLoop
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest


def test_it_puts_out_what_was_asked_for_and_returns_every_block() -> None:
    family = StubFamily()
    instance = family.load(LoadOptions(device="cpu", sessions=1))
    assert instance.blocks is not None
    free = instance.blocks.free
    (spec,) = family.spec.loops
    parameters = {parameter.name: parameter.default for parameter in spec.parameters}
    loop = BareLoop(
        family.kernel(spec.name, instance), instance, LoopRequest("bare", 1, parameters=parameters)
    )
    assert loop.advance(12) >= 0
    assert loop.frames == 12 * spec.chunk_frames
    assert loop.units >= 12
    loop.close()
    assert instance.blocks.free == free
