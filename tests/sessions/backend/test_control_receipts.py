"""Every control gets one receipt, whatever happens to its parts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.engine import emissions
from reverie.engine.inputs import ControlId, ControlInput, ParameterInput, PromptInput
from reverie.sessions.backend.control_receipts import ControlReceipts, Receipt
from reverie.sessions.protocol.events import ControlApplied, ControlSuperseded


def applied(control: ControlId, chunk: int = 3, **notes: object) -> emissions.ControlApplied:
    return emissions.ControlApplied("s", control, chunk * 4, chunk, chunk * 100, **notes)  # type: ignore[arg-type]


def superseded(control: ControlId, by: ControlId | None) -> emissions.ControlSuperseded:
    return emissions.ControlSuperseded("s", control, by)


class ReceiptsRig:
    """Commands sent to receipts, and what came back."""

    def __init__(self) -> None:
        self.receipts = ControlReceipts()
        self.told: list[Receipt] = []

    def command(self, name: str, context: int = 1) -> list[ControlId]:
        ids = [self.receipts.new_id() for _ in range(context)]
        inputs: list[ControlInput] = [PromptInput(ids[0], name)]
        inputs += [ParameterInput(each, "speed", 1.0) for each in ids[1:]]
        self.receipts.open(name, tuple(inputs), self.told.append)
        return ids


def test_a_control_that_acts_is_applied_under_the_command_s_own_id() -> None:
    sent = ReceiptsRig()
    (control,) = sent.command("a")
    sent.receipts.applied(applied(control, unknown_words=("blarg",), truncated_at=32))
    (receipt,) = sent.told
    assert isinstance(receipt, ControlApplied)
    assert (receipt.control, receipt.chunk, receipt.pts_us) == ("a", 3, 300)
    assert (receipt.unknown_words, receipt.truncated_at) == (("blarg",), 32)


def test_a_control_that_never_acts_names_what_took_its_place() -> None:
    sent = ReceiptsRig()
    (old,), (new,) = sent.command("a"), sent.command("b")
    sent.receipts.superseded(superseded(old, new))
    assert sent.told == [ControlSuperseded(control="a", by="b")]


def test_a_command_of_several_parts_gets_one_receipt_with_all_notes() -> None:
    sent = ReceiptsRig()
    prompt, speed = sent.command("a", context=2)
    sent.receipts.applied(applied(speed))
    assert sent.told == []
    sent.receipts.applied(applied(prompt, unknown_words=("blarg",)))
    (receipt,) = sent.told
    assert isinstance(receipt, ControlApplied)
    assert receipt.unknown_words == ("blarg",)


def test_a_receipt_that_has_begun_is_given_before_the_frames() -> None:
    sent = ReceiptsRig()
    prompt, speed = sent.command("a", context=2)
    sent.receipts.applied(applied(speed))
    sent.receipts.before_frames()
    assert [type(each) for each in sent.told] == [ControlApplied]
    sent.receipts.applied(applied(prompt))
    assert len(sent.told) == 1


def test_a_command_of_which_anything_acts_is_applied() -> None:
    sent = ReceiptsRig()
    prompt, speed = sent.command("a", context=2)
    (newer,) = sent.command("b")
    sent.receipts.superseded(superseded(prompt, newer))
    sent.receipts.applied(applied(speed))
    assert [type(each) for each in sent.told] == [ControlApplied]


def test_ids_that_the_session_never_gave_are_ignored() -> None:
    sent = ReceiptsRig()
    sent.receipts.applied(applied(ControlId("elsewhere")))
    sent.receipts.superseded(superseded(ControlId("elsewhere"), None))
    assert sent.told == []


def test_what_still_waits_at_the_end_is_given_up() -> None:
    sent = ReceiptsRig()
    sent.command("a", context=2)
    sent.command("b")
    sent.receipts.drop_all()
    assert sent.told == [
        ControlSuperseded(control="a", by=None),
        ControlSuperseded(control="b", by=None),
    ]
    assert len(sent.receipts) == 0


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=12), st.randoms())
@settings(deadline=None)
def test_every_command_gets_exactly_one_receipt(
    commands: list[tuple[int, int]], random: "st.DataObject"
) -> None:
    sent = ReceiptsRig()
    waiting = [
        control
        for number, (context, _) in enumerate(commands)
        for control in sent.command(f"c{number}", context)
    ]
    random.shuffle(waiting)  # type: ignore[attr-defined]
    for number, control in enumerate(waiting):
        if number % 3 == 0:
            sent.receipts.superseded(superseded(control, None))
        elif number % 3 == 1:
            sent.receipts.applied(applied(control))
        else:
            sent.receipts.before_frames()
    sent.receipts.drop_all()
    assert sorted(receipt.control for receipt in sent.told) == sorted(
        f"c{number}" for number in range(len(commands))
    )
