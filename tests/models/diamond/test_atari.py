"""Which action of an Atari agent is which, and which keys make it."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from diamond_agents import write_agent
from golden import GOLDENS
from loop_rig import Rig

from reverie.engine.inputs import ControlId, KeysInput
from reverie.models.contract.controls import Controls, KeyEdge, KeyInput
from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions, require_taken
from reverie.models.contract.loop import LoopRequest
from reverie.models.diamond.actions import KEYS, action_of
from reverie.models.diamond.atari import ACTIONS, FULL, game_called, keys_of, presses_of
from reverie.models.diamond.config import ATARI, CSGO, GameConfig
from reverie.models.diamond.spec import Diamond

RECORDED = json.loads((GOLDENS / "diamond" / "atari_actions.json").read_text())
"""Facts of the Arcade Learning Environment, and what the public player makes of its keyboard."""


def game_of(actions: tuple[str, ...]) -> GameConfig:
    world = replace(ATARI.world, actions=len(actions))
    return replace(ATARI, world=world, actions=actions, keys=keys_of(actions))


def made(game: GameConfig, *held: str, tapped: tuple[str, ...] = ()) -> str:
    """Return the action that keys make, by its name; those held in the order of their presses."""
    edges = [KeyEdge(key, down) for key in tapped for down in (True, False)]
    controls = Controls(keys={KEYS: KeyInput(tuple(edges), held)})
    return game.actions[int(action_of(controls, game))]


@pytest.mark.parametrize("game", ACTIONS)
def test_the_actions_of_a_game_are_those_of_the_emulator(game: str) -> None:
    assert list(ACTIONS[game]) == RECORDED["minimal_actions"][game]


def test_there_are_all_games_that_agents_are_published_for() -> None:
    assert set(ACTIONS) == set(RECORDED["minimal_actions"])
    assert len(ACTIONS) == 26


@pytest.mark.parametrize("game", ACTIONS)
def test_keys_make_what_they_make_in_the_public_player(game: str) -> None:
    played = game_of(ACTIONS[game])
    for keys, number in RECORDED["keyboard"][game]:
        if set(keys) <= set(played.keys):
            assert played.actions.index(made(played, *keys)) == number, keys


@pytest.mark.parametrize("game", ACTIONS)
def test_every_action_is_reached_by_pressing_its_keys(game: str) -> None:
    played = game_of(ACTIONS[game])
    for action in played.actions:
        assert made(played, *presses_of(action)) == action


@pytest.mark.parametrize("game", ACTIONS)
def test_whatever_is_pressed_makes_an_action_of_keys_that_are_pressed(game: str) -> None:
    played = game_of(ACTIONS[game])
    for count in range(len(played.keys) + 1):
        for keys in combinations(played.keys, count):
            assert presses_of(made(played, *keys)) <= set(keys)


class TestPresses:
    """Of keys that no action has together."""

    def test_the_one_pressed_last_counts(self) -> None:
        assert made(game_of(FULL), "left", "right") == "right"
        assert made(game_of(FULL), "right", "up", "left") == "upleft"
        assert made(game_of(ACTIONS["Breakout"]), "fire", "left") == "left"
        assert made(game_of(ACTIONS["Gopher"]), "fire", "up", "right") == "rightfire"

    def test_a_tap_counts_before_what_is_held(self) -> None:
        assert made(game_of(ACTIONS["Breakout"]), "left", tapped=("fire",)) == "fire"
        assert made(game_of(FULL), "left", tapped=("fire",)) == "leftfire"
        assert made(game_of(FULL), "right", "up", tapped=("left",)) == "upleft"

    def test_a_key_that_acts_only_with_others_does_nothing_alone(self) -> None:
        game = game_of(ACTIONS["KungFuMaster"])
        assert made(game, "fire") == "noop"
        assert made(game, "fire", "up") == "up"
        assert made(game, "fire", "right") == "rightfire"


class TestGame:
    """Which game an agent plays."""

    def keys(self, path: Path, game: str = "auto") -> tuple[str, ...]:
        options = LoadOptions(device="cpu", checkpoint=str(path), game=game)
        return Diamond().load(options).spec.loops[0].controls[0].keys

    def network_is_told(self, path: Path, key: str, game: str = "auto") -> int:
        """Return the action that the world model gets when a key is held for one picture."""
        options = LoadOptions(device="cpu", checkpoint=str(path), game=game, sessions=1)
        rig = Rig(Diamond(), options)
        told: list[int] = []
        network = rig.instance.components["world"]
        network.register_forward_hook(lambda _, given, __: told.append(int(given[3][0, -1])))
        driver = rig.open(LoopRequest("s1", 0))
        rig.run_chunks("s1", 1)
        driver.push([KeysInput(ControlId("k"), KEYS, (KeyEdge(key, down=True),))])
        rig.run_chunks("s1", 1)
        assert len(set(told)) == 1
        return told[0]

    def test_right_in_pong_goes_right(self, tmp_path: Path) -> None:
        write_agent(tmp_path / "Pong.pt", actions=6)
        assert self.network_is_told(tmp_path, "right") == 2
        assert self.network_is_told(tmp_path, "left") == 3

    def test_an_option_names_a_game_that_the_file_does_not(self, tmp_path: Path) -> None:
        write_agent(tmp_path / "agent_epoch_01000.pt", actions=6)
        assert self.keys(tmp_path) == ("1", "2", "3", "4", "5")
        assert self.keys(tmp_path, "qbert") == ("fire", "up", "right", "left", "down")
        assert self.network_is_told(tmp_path, "right", "Pong") == 2
        assert self.network_is_told(tmp_path, "right", "Qbert") == 3

    def test_the_folder_names_it_where_the_file_does_not(self, tmp_path: Path) -> None:
        folder = tmp_path / "demon_attack"
        folder.mkdir()
        write_agent(folder / "agent.pt", actions=6)
        assert self.keys(folder) == ("fire", "right", "left")

    def test_actions_of_an_unknown_game_are_numbered(self, tmp_path: Path) -> None:
        write_agent(tmp_path / "Tennis-like.pt", actions=5)
        assert self.keys(tmp_path) == ("1", "2", "3", "4")
        assert self.network_is_told(tmp_path, "3") == 3

    def test_a_name_of_a_game_with_other_actions_is_not_believed(self, tmp_path: Path) -> None:
        write_agent(tmp_path / "Pong.pt", actions=4)
        assert self.keys(tmp_path) == ("1", "2", "3")

    def test_eighteen_actions_are_all_of_the_joystick_whatever_the_game(
        self, tmp_path: Path
    ) -> None:
        write_agent(tmp_path / "agent.pt", actions=18)
        assert self.keys(tmp_path) == ("fire", "up", "right", "left", "down")
        assert self.network_is_told(tmp_path, "left") == 4

    def test_a_game_with_other_actions_than_the_agent_is_refused(self, tmp_path: Path) -> None:
        write_agent(tmp_path / "agent.pt", actions=6)
        with pytest.raises(
            OptionError, match=r"game: Breakout has 4 actions, but .* has 6 actions"
        ):
            self.keys(tmp_path, "Breakout")

    def test_a_game_that_there_is_not_is_refused_before_anything_is_loaded(self) -> None:
        with pytest.raises(OptionError, match=r"game: diamond supports auto, Alien"):
            require_taken(LoadOptions(game="Tetris"), Diamond.spec)

    @pytest.mark.parametrize(
        ("name", "game"),
        [
            ("Pong", "Pong"),
            ("PongNoFrameskip-v4", "Pong"),
            ("pong_seed2", "Pong"),
            ("bank_heist", "BankHeist"),
            ("BANKHEIST", "BankHeist"),
            ("diamond-UpNDown-final", "UpNDown"),
            ("ms-pacman", "MsPacman"),
            ("agent_epoch_00999", None),
            ("superhero", None),
            ("Pong-and-Boxing", None),
            ("", None),
        ],
    )
    def test_a_name_is_of_one_game_or_of_none(self, name: str, game: str | None) -> None:
        assert game_called(name) == game


def test_counter_strike_has_keys_of_its_own() -> None:
    assert CSGO.actions == ()
