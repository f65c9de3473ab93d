"""The world model's pass over one frame a session, as it is served on a CPU.

The same numbers as `WorldModel.forward`, within rounding, with what does not change computed once:
matrices lie as the products read them, rotations and the scales of queries and keys are tables, the
modulation of a level, stance and prompt is kept, and a frame's own keys go into the room behind
those of its past. It holds copies of the weights, so it is made when they are final.

Shapes: as in `world_model.py`; B rows, H hidden channels.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from reverie.models.pocket.network.block import PocketBlock
from reverie.models.pocket.network.frame_inputs import FrameCondition, FrameRooms, Past, Room
from reverie.models.pocket.network.noise_features import noise_features
from reverie.models.pocket.network.world_model import WorldModel

KEPT_CONDITIONS = 256
"""Modulations that are kept: levels times stances times prompts of the sessions."""


Tables = tuple[Tensor, Tensor]
"""What a vector and its swapped halves are multiplied with, to be scaled and rotated."""


class LayerWeights:
    """The weights of a block, as `FramePass` reads them.

    Attributes:
        turned: by slot, the tables of queries and keys [N, 2, 1, d], rotated by place and slot.
        placed: those of keys as a cache keeps them [N, 1, d], rotated by place only.
    """

    def __init__(self, block: PocketBlock, world: WorldModel) -> None:
        attention, forward_part = block.attention, block.forward_part
        self.qkv_DE = attention.qkv.weight.t().contiguous()
        self.out_DD = attention.out.weight.t().contiguous()
        self.up_DE = forward_part.up.weight.t().contiguous()
        self.down_HD = forward_part.down.weight.t().contiguous()
        self.spread = forward_part.spread
        scales_2d = torch.stack((attention.q_scale, attention.k_scale)).float()
        place = world.place_cosine, world.place_sine
        slots = zip(world.slot_cosine, world.slot_sine, strict=True)
        dtype = self.qkv_DE.dtype
        self.turned = [_tables(scales_2d[:, None], _sum(place, slot), dtype) for slot in slots]
        self.placed = _tables(scales_2d[1:], place, dtype)


def _sum(place: Tables, slot: Tables) -> Tables:
    """Return cosines and sines [N, d/2] of the angles of places plus that of a slot."""
    (cosine, sine), (slot_cosine, slot_sine) = place, slot
    return cosine * slot_cosine - sine * slot_sine, sine * slot_cosine + cosine * slot_sine


def _tables(scale_d: Tensor, angles: Tables, dtype: torch.dtype) -> Tables:
    """Return the tables that scale by `scale_d` [..., d] and then rotate by angles [N, d/2]."""
    cosine, sine = (angle.view(len(angle), *(1,) * (scale_d.dim() - 1), -1) for angle in angles)
    kept, moved = torch.cat((cosine, cosine), -1), torch.cat((-sine, sine), -1)
    return (scale_d * kept).to(dtype), (_swapped(scale_d) * moved).to(dtype)


def _swapped(x: Tensor) -> Tensor:
    """Return x with the halves of its last dimension exchanged: pairs are (i, i + d/2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((second, first), dim=-1)


class FramePass:
    """The passes of a world model whose weights are final."""

    def __init__(self, world: WorldModel) -> None:
        self._world = world
        self._first = next(world.stack())
        self._layers = tuple(LayerWeights(block, world) for block in world.stack())
        self._enter_CD = world.enter.weight.t().contiguous()
        self._base_ND = world.enter.bias + world.places
        self._leave_DC = world.leave.weight.t().contiguous()
        modulations = [block.modulation for block in world.stack()]
        self._modulate_CE = torch.cat([each.weight for each in modulations]).t().contiguous()
        self._modulate_E = torch.cat([each.bias for each in modulations])
        self._conditions: OrderedDict[tuple[float, int, int, float], tuple[Tensor, Tensor]]
        self._conditions = OrderedDict()

    def predict(
        self,
        noisy_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> Tensor:
        """Return the predicted clean latents [B, Z, h, w], float32; see `WorldModel.forward`."""
        x_BND = self._run(noisy_BZhw, previous_BZhw, conditions, past, None)
        assert x_BND is not None, "only a pass for the cache ends early"
        normal = functional.layer_norm(x_BND, x_BND.shape[-1:])
        change = torch.matmul(normal, self._leave_DC).add_(self._world.leave.bias)
        return previous_BZhw.float() + self._world.cells(change.float()[:, None])[:, 0]

    def remember(
        self,
        clean_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> Tensor:
        """Return keys and values [B, 2, L, A, N, d] of a frame, as a cache keeps them."""
        config, B = self._world.config, len(clean_BZhw)
        shape = (B, 2, config.layers, config.heads, config.tokens, config.head_size)
        kept = torch.empty(shape, dtype=self._enter_CD.dtype, device=clean_BZhw.device)
        self._run(clean_BZhw, previous_BZhw, conditions, past, kept)
        return kept

    def read(self, cached_BP2LANd: Tensor) -> Past:
        """Return cached frames, oldest first, with room for the keys of the frame in progress."""
        B, P, _, L, A, N, d = cached_BP2LANd.shape
        k, v = cached_BP2LANd.permute(2, 3, 0, 4, 1, 5, 6)  # [L, B, A, P, N, d]
        room = torch.empty((2, L, B, A, P + 1, N, d), dtype=k.dtype, device=k.device)
        cosine, sine = (
            table[:P, None].to(k.dtype)
            for table in (self._world.slot_cosine, self._world.slot_sine)
        )
        keys, values = room[0, :, :, :, :P], room[1, :, :, :, :P]
        first, second = k.chunk(2, dim=-1)
        torch.mul(first, cosine, out=keys[..., : d // 2]).addcmul_(second, sine, value=-1)
        torch.mul(first, sine, out=keys[..., d // 2 :]).addcmul_(second, cosine)
        values.copy_(v)
        rooms = tuple(zip(*room.flatten(4, 5).unbind(0), strict=True))
        layers = tuple((key[:, :, : P * N], value[:, :, : P * N]) for key, value in rooms)
        return Past(P, layers, FrameRooms(rooms))

    def _run(
        self,
        noisy_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
        kept: Tensor | None,
    ) -> Tensor | None:
        """Run the blocks; with `kept` fill it, and end where the last of it is known."""
        x_BND = self._enter(noisy_BZhw, previous_BZhw, conditions)
        modulation_BL6D = self._modulation(conditions)
        slot, last = 0 if past is None else past.frames, len(self._layers) - 1
        for index, layer in enumerate(self._layers):
            shift, scale, gate, forward_shift, forward_scale, forward_gate = modulation_BL6D[
                :, index
            ].unbind(1)
            qkv = _product(_modulated(x_BND, shift, scale), layer.qkv_DE)
            qkv_BN3Ad = qkv.view(*qkv.shape[:2], 3, self._world.config.heads, -1)
            if kept is not None:
                self._keep(qkv_BN3Ad, layer, kept[:, :, index])
                if index == last:
                    return None
            room = None if past is None else _room(past, index)
            mixed = self._attend(qkv_BN3Ad, layer, slot, room)
            x_BND = torch.addcmul(x_BND, gate[:, None], _product(mixed, layer.out_DD))
            normal = _modulated(x_BND, forward_shift, forward_scale)
            x_BND = torch.addcmul(x_BND, forward_gate[:, None], _forward(normal, layer))
        return x_BND

    def _enter(
        self,
        noisy_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
    ) -> Tensor:
        world, dtype = self._world, self._enter_CD.dtype
        noisy_BNC = world.patches(noisy_BZhw[:, None])[:, 0]
        previous_BNC = world.patches(previous_BZhw[:, None])[:, 0]
        tokens_BNC = torch.cat((noisy_BNC, previous_BNC), dim=-1).to(dtype)
        x_BND = _product(tokens_BNC, self._enter_CD).add_(self._base_ND)
        pure = [row for row, condition in enumerate(conditions) if condition.level >= 1]
        if pure:
            waves = noise_features(noisy_BNC[pure], world.config.latent_channels).to(dtype)
            x_BND[pure] += world.luck(waves)
        return x_BND

    def _modulation(self, conditions: Sequence[FrameCondition]) -> Tensor:
        """Return shifts, scales and gates of all layers: [B, L, 6, D]."""
        rows = [self._kept_modulation(condition) for condition in conditions]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def _kept_modulation(self, condition: FrameCondition) -> Tensor:
        key = (condition.level, condition.stance, id(condition.text_T), condition.told)
        found = self._conditions.get(key)
        if found is not None:
            self._conditions.move_to_end(key)
            return found[1]
        told = self._world.conditioned(
            torch.tensor([[condition.level]], device=condition.text_T.device),
            torch.tensor([[condition.stance]], device=condition.text_T.device),
            condition.text_T[None, None],
            torch.tensor([condition.told], device=condition.text_T.device),
        )
        mixed = torch.addmm(self._modulate_E, told[:, 0], self._modulate_CE)
        modulation_1L6D = mixed.view(1, len(self._layers), 6, -1)
        modulation_1L6D[:, :, 1::3] += 1  # both scales
        self._conditions[key] = (condition.text_T, modulation_1L6D)  # its id stays taken
        if len(self._conditions) > KEPT_CONDITIONS:
            self._conditions.popitem(last=False)
        return modulation_1L6D

    def _keep(self, qkv_BN3Ad: Tensor, layer: LayerWeights, kept_B2ANd: Tensor) -> None:
        k_BNAd, v_BNAd = qkv_BN3Ad[:, :, 1], qkv_BN3Ad[:, :, 2]
        stays, moves = layer.placed
        placed = torch.addcmul(k_BNAd * stays, _swapped(k_BNAd), moves).mul_(_inverse_rms(k_BNAd))
        kept_B2ANd[:, 0] = placed.transpose(1, 2)
        kept_B2ANd[:, 1] = v_BNAd.transpose(1, 2)

    def _attend(
        self, qkv_BN3Ad: Tensor, layer: LayerWeights, slot: int, room: Room | None
    ) -> Tensor:
        """Attend from one frame to the cache and itself: [B, N, D]."""
        qk_BN2Ad = qkv_BN3Ad[:, :, :2]
        stays, moves = layer.turned[slot]
        turned = torch.addcmul(qk_BN2Ad * stays, _swapped(qk_BN2Ad), moves)
        q, k = turned.mul_(_inverse_rms(qk_BN2Ad)).permute(2, 0, 3, 1, 4)  # [B, A, N, d]
        v = qkv_BN3Ad[:, :, 2].transpose(1, 2)
        if room is not None:
            tokens = k.shape[2]
            room[0][:, :, -tokens:] = k
            room[1][:, :, -tokens:] = v
            k, v = room
        mixed_BANd = self._first.attention.attend(q, k, v)
        return mixed_BANd.transpose(1, 2).flatten(2)


def _room(past: Past, index: int) -> Room:
    """Return keys and values of a layer with room behind them."""
    if past.rooms is not None:
        return past.rooms.layers[index]
    keys, values = past.layers[index]
    tokens = keys.shape[2] // past.frames
    return functional.pad(keys, (0, 0, 0, tokens)), functional.pad(values, (0, 0, 0, tokens))


def _product(x_BNC: Tensor, weights_CD: Tensor) -> Tensor:
    B, N, C = x_BNC.shape
    return torch.mm(x_BNC.view(B * N, C), weights_CD).view(B, N, -1)


def _modulated(x_BND: Tensor, shift_BD: Tensor, scale_BD: Tensor) -> Tensor:
    width = x_BND.shape[-1:]
    if len(x_BND) == 1:
        return functional.layer_norm(x_BND, width, scale_BD[0], shift_BD[0])
    normal = functional.layer_norm(x_BND, width)
    return torch.addcmul(shift_BD[:, None], normal, scale_BD[:, None])


def _inverse_rms(x: Tensor) -> Tensor:
    """Return one over the root of the mean square of the last dimension, as `rms_norm` has it."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    mean: Tensor = norm.square_().div_(x.shape[-1]).add_(torch.finfo(x.dtype).eps)
    return mean.rsqrt_().to(x.dtype)


def _forward(x_BND: Tensor, layer: LayerWeights) -> Tensor:
    """Return what the feed-forward adds; see `ConvolutionalFeedForward`."""
    B, N, _ = x_BND.shape
    side = math.isqrt(N)
    value_BNH, gate_BNH = _product(x_BND, layer.up_DE).chunk(2, dim=-1)
    grid_BHss = value_BNH.view(B, side, side, -1).permute(0, 3, 1, 2)
    spread_BNH: Tensor = layer.spread(grid_BHss).permute(0, 2, 3, 1).reshape(B, N, -1)
    return _product(functional.silu(gate_BNH).mul_(spread_BNH), layer.down_HD)


def freeze(world: WorldModel) -> None:
    """Let a world model run frames by `FramePass`: its weights do not change any more."""
    world.run_frames_by(FramePass(world))
