"""What a worker is told to load."""

import sys
from dataclasses import replace

from reverie.gpu_pool.wire.messages import LoadModel
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.speed import MeasuredSpeed


def load_message(
    model: ModelOptions, options: PoolOptions, speed: MeasuredSpeed | None
) -> LoadModel:
    """Return the first message to a worker.

    Args:
        model: which model.
        options: the pool's.
        speed: what the first worker measured and chose; None: there is none, or it chose nothing.
    """
    # One more than the sessions need, so that one which is slow does not hold up the rest.
    slots = model.sessions * options.slots_a_session + 1
    return LoadModel(
        family=model.family or model.name,
        options=_load_options(model, options, speed),
        max_batch=model.max_batch,
        ring_slots=slots,
        search_path=tuple(sys.path),
        prompt_limit_s=options.prompt_limit_s,
    )


def _load_options(
    model: ModelOptions, options: PoolOptions, speed: MeasuredSpeed | None
) -> LoadOptions:
    """Return what to load with: after a loss, what the first worker has chosen."""
    load_options = replace(model.load_options(), workers=len(options.models))
    if speed is None:
        return load_options
    return replace(
        load_options,
        precision=speed.setting.precision,
        threads=speed.setting.threads,
        steps=speed.steps,
        calibration_s=0.0,
    )
