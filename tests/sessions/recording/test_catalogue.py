"""Which recordings must be deleted."""

from hypothesis import given
from hypothesis import strategies as st

from reverie.media.files.fragmented_mp4 import Recorded
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.recording.catalogue import RecordingCatalogue
from reverie.sessions.recording.options import RecordingOptions
from reverie.sessions.recording.recording import Entry, Keys, Recording

MIB = 2**20


def entry(
    number: int,
    started_s: float = 0.0,
    session: str = "s",
    secret: str = "t",
    owner: str = "o",
) -> Entry:
    recording = Recording(
        id=f"{number:024x}",
        session=session,
        kind="recording",
        model="m",
        program="p",
        seed=7,
        started_s=started_s,
    )
    return Entry(recording=recording, keys=Keys.of(secret, f"{secret} watches", owner))


def filled(options: RecordingOptions, sizes_mib: list[int]) -> tuple[RecordingCatalogue, list[str]]:
    """Return a catalogue of recordings of these sizes, begun a second apart."""
    catalogue, ids = RecordingCatalogue(options), []
    for number, size in enumerate(sizes_mib):
        made = entry(number, started_s=float(number))
        catalogue.enter(made)
        catalogue.change(made.recording.id, Recorded(), 0, size * MIB, "complete")
        ids.append(made.recording.id)
    return catalogue, ids


@given(
    st.lists(st.integers(0, 5), max_size=12),
    st.integers(1, 20),
    st.integers(1, 12),
    st.sets(st.integers(0, 11)),
    st.integers(0, 30),
)
def test_the_oldest_go_until_it_fits_and_what_runs_stays(
    sizes_mib: list[int], keep_mib: int, keep_count: int, running: set[int], now_s: int
) -> None:
    options = RecordingOptions(keep_bytes=keep_mib * MIB, keep_count=keep_count, keep_s=15.0)
    catalogue, ids = filled(options, sizes_mib)
    runs = {ids[number] for number in running if number < len(ids)}
    gone = catalogue.to_let_go(float(now_s), runs)
    assert not runs & set(gone)
    assert gone == [each for each in ids if each in set(gone)]
    old = [each for number, each in enumerate(ids) if now_s - number > 15 and each not in runs]
    assert set(old) <= set(gone)
    for each in gone:
        assert catalogue.remove(each)
    rest = [each for each in ids if each not in set(gone)]
    assert not catalogue.is_too_much or set(rest) <= runs
    assert catalogue.to_let_go(float(now_s), runs) == []


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=12),
    st.integers(1, 20),
    st.integers(1, 6),
    st.sets(st.integers(0, 11), min_size=1),
)
def test_no_owner_s_recordings_are_deleted_or_ended_for_another_s(
    made: list[tuple[str, int]], keep_mib: int, own_mib: int, running: set[int]
) -> None:
    options = RecordingOptions(
        keep_bytes=keep_mib * MIB, keep_bytes_per_owner=own_mib * MIB, keep_count_per_owner=3
    )
    catalogue, owners = RecordingCatalogue(options), dict[str, str]()
    for number, (owner, size) in enumerate(made):
        new = entry(number, owner=owner)
        catalogue.enter(new)
        catalogue.change(new.recording.id, Recorded(), 0, size * MIB, "complete")
        owners[new.recording.id] = owner
    runs = {id for number, id in enumerate(owners) if number in running}
    recording = {owners[id] for id in runs}
    gone = catalogue.to_let_go(0.0, runs)
    for owner in set(owners.values()) - recording if runs else ():
        theirs = [id for id in owners if owners[id] == owner]
        lost = [id for id in theirs if id in gone]
        kept = [id for id in theirs if id not in gone]
        mib = sum(made[int(id, 16)][1] for id in kept)
        assert len(kept) <= 3
        assert mib <= own_mib
        if lost:  # and no more than their own quota asks for
            newest = made[int(lost[-1], 16)][1]
            assert len(kept) + 1 > 3 or mib + newest > own_mib
    for each in gone:
        catalogue.remove(each)
    ends = catalogue.to_stop(runs)
    assert set(ends) <= runs
    if runs and catalogue.is_too_much:
        assert "keep_bytes" in ends.values()


def test_a_new_recording_is_refused_by_the_setting_that_it_runs_into() -> None:
    options = RecordingOptions(keep_count=4, keep_count_per_address=2)
    catalogue = RecordingCatalogue(options)
    for number, address in enumerate(("x", "x", "y")):
        catalogue.enter(entry(number, owner=address), address)
    assert catalogue.limit_reached("x") == "keep_count_per_address"
    assert catalogue.limit_reached("y") is None
    assert catalogue.limit_reached("") is None
    catalogue.enter(entry(3, owner="z"), "z")
    assert catalogue.limit_reached("new") == "keep_count"
    y, z = (Keys.of("", "", owner).owner for owner in "yz")
    assert catalogue.oldest_of(y, ()) == f"{2:024x}"
    assert catalogue.oldest_of(y, (), "x") is None
    assert catalogue.oldest_of(z, (f"{3:024x}",)) is None


def test_secrets_open_the_recordings_of_their_session_and_no_others() -> None:
    catalogue = RecordingCatalogue(RecordingOptions())
    catalogue.enter(entry(1, session="one", secret="a"))
    catalogue.enter(entry(2, session="two", secret="b"))
    assert catalogue.role("one", "a") is Role.DRIVER
    assert catalogue.role("one", "a watches") is Role.VIEWER
    assert catalogue.role("one", "b") is None
    assert catalogue.role("none", "a") is None
    assert [each.session for each in catalogue.of("two")] == ["two"]
    assert catalogue.get("one", f"{2:024x}") is None


def test_what_is_not_there_any_more_is_not_changed() -> None:
    catalogue = RecordingCatalogue(RecordingOptions())
    assert catalogue.change("x", Recorded(), 0, 1) is None
    assert not catalogue.remove("x")
