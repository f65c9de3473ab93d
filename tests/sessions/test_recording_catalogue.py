"""Which recordings must go."""

from hypothesis import given
from hypothesis import strategies as st

from reverie.media.fragmented_mp4 import Recorded
from reverie.sessions.attachment import Role
from reverie.sessions.recording import Entry, Keys, Recording
from reverie.sessions.recording_catalogue import RecordingCatalogue
from reverie.sessions.recording_options import RecordingOptions

MIB = 2**20


def entry(number: int, started_s: float = 0.0, session: str = "s", secret: str = "t") -> Entry:
    recording = Recording(
        id=f"{number:024x}",
        session=session,
        kind="recording",
        model="m",
        program="p",
        seed=7,
        started_s=started_s,
    )
    return Entry(recording=recording, keys=Keys.of(secret, f"{secret} watches", "o"))


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
