"""Whatever is asked, in any order: what holds for a session holds always (a property test)."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from loop_rig import Rig, stub_rig
from stub_model import KEYS, Fault, StubState, prompt_mark, read_stamp, session_mark, stub_request

from reverie.engine.driver import DriverOptions, LoopDriver
from reverie.engine.emissions import ControlApplied, ControlSuperseded, FramesOut
from reverie.engine.errors import ChunkNotKeptError, NoSnapshotError, UnknownSnapshotError
from reverie.engine.inputs import AxisInput, ControlId, KeysInput, ParameterInput, PromptInput
from reverie.engine.loop_status import Position
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.spec import Lead

HISTORY = 3
LEAD = 2
FRAME_US = 50_000


class AnyOrder(RuleBasedStateMachine):
    """One session under every command there is, next to a session that only runs."""

    rig: Rig
    driver: LoopDriver[StubState]

    @initialize(fault=st.sampled_from([Fault.NONE, Fault.RAISE, Fault.NAN, Fault.REUSE_BUFFER]))
    def open(self, fault: Fault) -> None:
        self.rig = stub_rig(history_chunks=HISTORY, seen_at_once=False)
        options = DriverOptions(lead=Lead(LEAD), history_chunks=HISTORY, snapshots=1)
        self.driver = self.rig.open(stub_request(fault=fault, fault_chunk=2, fault_unit=1), options)
        self.sent: list[str] = []
        self.prompt = "a frozen lake"
        self.down: dict[str, None] = {}
        self.seen_chunk: int | None = None
        self.expected_world: int | None = 0
        self.jumped = False
        self.unseen: list[int] = []

    # --- time passes ---

    @rule(units=st.integers(1, 6))
    def run(self, units: int) -> None:
        for _ in range(units):
            held = self.driver.held
            before = len(self.frames)
            ran = self.rig.step()
            assert not (held and ran), "a unit ran while paused"
            for chunk in self.frames[before:]:
                self.check_chunk(chunk)

    @rule()
    def viewer_sees_all(self) -> None:
        if self.frames:
            self.seen_chunk = self.frames[-1].header.chunk
            self.viewer_reports_something(self.seen_chunk)

    @rule(chunk=st.integers(-1, 40))
    def viewer_reports_something(self, chunk: int) -> None:
        self.driver.seen(chunk, self.rig.clock())
        self.unseen = [unseen for unseen in self.unseen if unseen > chunk]

    @rule(watched=st.booleans())
    def watch(self, watched: bool) -> None:
        self.driver.watched(watched)

    # --- controls ---

    @rule(text=st.sampled_from(["a sea", "a desert", "a city", ""]))
    def ask(self, text: str) -> None:
        self.prompt = text
        self.driver.push([PromptInput(self.next_id(), text)])

    @rule(key=st.sampled_from(KEYS), down=st.booleans())
    def press(self, key: str, down: bool) -> None:
        if down:
            self.down.setdefault(key)
        else:
            self.down.pop(key, None)
        self.driver.push([KeysInput(self.next_id(), "move", (KeyEdge(key, down),))])

    @rule()
    def let_go(self) -> None:
        self.down.clear()
        self.driver.release_keys()

    @rule(value=st.floats(0, 1))
    def slide(self, value: float) -> None:
        self.driver.push(
            [
                ParameterInput(self.next_id(), "brightness", value),
                AxisInput(self.next_id(), "look", value),
            ]
        )

    # --- commands ---

    @rule()
    def pause(self) -> None:
        assert self.driver.pause() == self.driver.position

    @rule()
    def resume(self) -> None:
        assert self.driver.resume() == self.driver.position

    @rule(chunks=st.integers(1, 3))
    def advance(self, chunks: int) -> None:
        self.driver.advance(chunks)

    @rule()
    def interrupt(self) -> None:
        self.went_back(self.driver.interrupt(self.seen_chunk))

    @rule(back=st.integers(0, 6))
    def rewind(self, back: int) -> None:
        try:
            self.went_back(self.driver.rewind(self.driver.position.chunk - back))
        except ChunkNotKeptError:
            assert back > 0, "the newest chunk is always kept"

    @rule(seed=st.none() | st.integers(0, 255))
    def reset(self, seed: int | None) -> None:
        self.went_back(self.driver.reset(seed))
        self.expected_world = 0

    @rule()
    def snapshot(self) -> None:
        try:
            self.driver.snapshot("it")
        except NoSnapshotError:
            assert self.driver.position.chunk == -1

    @rule()
    def restore(self) -> None:
        try:
            self.went_back(self.driver.restore("it"))
        except UnknownSnapshotError:
            return

    @precondition(lambda self: self.driver.position.chunk > 0)
    @rule()
    def crowd(self) -> None:
        """A neighbour comes, runs and goes."""
        self.rig.open(stub_request("neighbour", seed=1))
        for _ in range(5):
            before = len(self.frames)
            self.rig.step()
            for chunk in self.frames[before:]:
                self.check_chunk(chunk)
        self.rig.close("neighbour")

    # --- what holds always ---

    @invariant()
    def the_lead_is_kept(self) -> None:
        assert len(self.unseen) <= LEAD
        assert not self.driver.ended

    @invariant()
    def numbers_and_times_only_grow(self) -> None:
        times = [(chunk.header.chunk, chunk.header.pts_us) for chunk in self.frames]
        assert times == sorted(set(times))
        for one, other in zip(self.frames, self.frames[1:], strict=False):
            assert other.header.pts_us == one.header.pts_us + 2 * FRAME_US, "a gap in media time"

    @invariant()
    def blocks_stay_within_the_budget(self) -> None:
        pool = self.rig.instance.blocks
        assert pool is not None
        budget = self.rig.kernel.spec.blocks_a_session(HISTORY)
        assert pool.count - pool.free <= budget

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        answered = Counter(
            told.control for told in self.rig.heard_of("s1", ControlApplied, ControlSuperseded)
        )
        assert all(count == 1 for count in answered.values())
        assert set(answered) <= set(self.sent)

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        self.driver.resume()
        self.driver.watched(True)
        for _ in range(40):  # two chunks bring every control into the picture
            if self.frames:
                self.driver.seen(self.frames[-1].header.chunk, self.rig.clock())
            self.rig.step()
        last = read_stamp(self.frames[-1].frames[0])
        assert last.prompt == prompt_mark(self.prompt)
        assert last.held == set(self.down)
        self.rig.close("s1")
        told = self.rig.heard_of("s1", ControlApplied, ControlSuperseded)
        assert sorted(answer.control for answer in told) == sorted(self.sent)
        pool = self.rig.instance.blocks
        assert pool is not None
        assert pool.free == pool.count

    # --- words ---

    @property
    def frames(self) -> list[FramesOut]:
        return self.rig.frames("s1")

    def next_id(self) -> ControlId:
        self.sent.append(f"c{len(self.sent)}")
        return ControlId(self.sent[-1])

    def went_back(self, position: Position) -> None:
        end_us = self.frames[-1].header.pts_us + 2 * FRAME_US if self.frames else 0
        assert position.pts_us == end_us
        self.jumped = True
        self.unseen.clear()
        self.expected_world = None

    def check_chunk(self, chunk: FramesOut) -> None:
        """Frames of one chunk are whole, this session's, and follow from those before."""
        read = [read_stamp(frame) for frame in chunk.frames]
        assert [stamp.frame for stamp in read] == [0, 1]
        assert {stamp.session for stamp in read} == {session_mark("s1")}
        world = read[0].chunk
        if self.expected_world is not None:
            assert world == self.expected_world
        assert chunk.header.discontinuity == self.jumped
        self.jumped = False
        self.unseen.append(chunk.header.chunk)
        self.expected_world = world + 1


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
