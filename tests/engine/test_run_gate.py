"""Whether a loop may run at all."""

from reverie.engine.run_gate import RunGate


def test_a_pause_holds_every_chunk_and_an_advance_lets_as_many_through() -> None:
    gate = RunGate()
    gate.pause()
    assert not gate.open(begun=True)
    gate.advance(2)
    gate.shown()
    assert gate.open(begun=False)
    gate.shown()
    assert gate.held
    gate.resume()
    assert gate.open(begun=False)


def test_unwatched_only_what_has_begun_goes_on() -> None:
    gate = RunGate()
    gate.watched(False)
    assert gate.open(begun=True)
    assert not gate.open(begun=False)


def test_an_advance_of_what_runs_pauses_it_after_so_many() -> None:
    gate = RunGate()
    gate.advance(1)
    assert gate.paused
    gate.shown()
    assert not gate.open(begun=True)


def test_what_is_skipped_need_not_be_put_out() -> None:
    gate = RunGate()
    gate.advance(3)
    gate.skip()
    assert gate.held
