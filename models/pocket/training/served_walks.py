"""Sessions of the serving loop that continue from the last frames of walks.

The serving kernel makes a walk, through the interface of `rollouts.py`. Sessions are opened for a
few frames and closed again: only the history of the walk is kept, so a training that was stopped
continues exactly.

Shapes: B walks, W frames of the window, Z channels on a grid h x w, L words of a text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reverie.models.contract.behavior import ActionRecord, Behavior
from reverie.models.contract.loop import LoopRequest
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.spec import WORLD_MODEL, instance_of
from reverie.models.pocket.training.rollouts import RolloutMaker
from reverie.models.pocket.world.durable import DurableWindow, durable_clip
from reverie.models.pocket.world.kernel import PocketKernel


@dataclass(frozen=True, slots=True)
class WalkStart:
    """The start of a session that continues one walk.

    Attributes:
        clean_WZhw: the frames in its window, oldest first.
        before_Zhw: the frame before them.
        actions: the stance behind each.
        words_WL: word ids of the text that each was made under.
        prompt: in effect now, as a client would have typed it.
        biome: in effect now.
        hour: in effect now.
    """

    clean_WZhw: Tensor
    before_Zhw: Tensor
    actions: Sequence[int]
    words_WL: Tensor
    prompt: str
    biome: Biome
    hour: Hour


class ServedWalks:
    """A kernel of the serving loop on networks that are being trained.

    Args:
        nets: the networks; their weights change between two calls of `open`.
        maker: runs the loop.
        most: the largest number of walks at a time.
    """

    def __init__(self, nets: PocketNets, maker: RolloutMaker, most: int) -> None:
        self.nets = nets
        self._instance = instance_of(nets, most, history_chunks=0)
        self._walks = maker(PocketKernel(WORLD_MODEL, nets, self._instance), self._instance)

    def open(
        self, starts: Sequence[WalkStart], seeds: Sequence[int], steps: int, step: int
    ) -> None:
        """Begin one session for each walk.

        Args:
            starts: the frames that they continue from.
            seeds: of their noise.
            steps: denoise steps a frame.
            step: of the training; it is the version of the weights.
        """
        self._instance.weights_version = f"step-{step}"
        for row, (start, seed) in enumerate(zip(starts, seeds, strict=True)):
            clip = DurableWindow(
                start.clean_WZhw,
                start.before_Zhw,
                list(start.actions),
                start.prompt,
                start.biome,
                start.hour,
                frame=len(start.actions),
            )
            durable = durable_clip(clip, self.nets, steps)
            with torch.inference_mode():
                text_WT = self.nets.text(start.words_WL).cpu()
            durable = replace(
                durable,
                weights_version=self._instance.weights_version,
                data={**durable.data, "text": text_WT},
            )
            parameters = {"steps": float(steps), "guidance": 1.0}
            self._walks.open(LoopRequest(str(row), seed, start.prompt, parameters), durable)

    def advance(self, actions: Sequence[int], prompts: Mapping[int, str]) -> list[Behavior]:
        """Make one frame of every walk; `prompts` holds new prompts by row."""
        asked = {
            str(row): ActionRecord(prompt=prompts.get(row), held=_held(action))
            for row, action in enumerate(actions)
        }
        rolled = self._walks.advance(asked)
        behaviors = [rolled[str(row)].record.behavior for row in range(len(actions))]
        return [behavior for behavior in behaviors if behavior is not None]

    def close(self, walks: int) -> None:
        """End the sessions."""
        for row in range(walks):
            self._walks.close(str(row))


def _held(action: int) -> dict[str, tuple[str, ...]]:
    return {} if action == Action.WAIT else {"move": (Action(action).name.lower(),)}
