"""An adapter as a session has it: a parameter with a range, and a receipt when it is chosen."""

from pathlib import Path

import pytest
import torch
from lora_files import pairs_for, write_peft
from session_suite import looking

from reverie.config import Deployment
from reverie.host import Engine
from reverie.models.wan.checkpoint.loading import TINY
from reverie.models.wan.network.transformer import WanTransformer
from reverie.sessions.protocol.errors import CommandError
from reverie.sessions.protocol.events import ControlApplied


def deployment(lora: Path) -> Deployment:
    adapter = {"name": "ink", "path": str(lora), "most": 1.5}
    model = {"name": "wan", "checkpoint": "random", "sessions": 1, "adapters": [adapter]}
    return Deployment.model_validate({"pool": {"mode": "inline", "models": [model]}})


async def test_a_session_sees_a_dial_and_turns_it(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = WanTransformer(TINY)
    lora = write_peft(tmp_path, pairs_for(model, ("blocks.0.ffn.0", "blocks.1.self_attn.v"), 1))
    async with (
        Engine.from_deployment(deployment(lora)) as engine,
        engine.session(model="wan", program="continuation", prompt="a lake") as session,
        looking(session) as screen,
    ):
        dials = {dial.name: dial for dial in session.view.parameters}
        assert (dials["lora_ink"].value, dials["lora_ink"].high) == (0.0, 1.5)
        assert dials["lora_ink"].label == "Strength of ink: 0 is off"
        await screen.until("media.chunk")
        command = await session.update(lora_ink=0.8)
        receipt = await screen.until("control.applied")
        assert isinstance(receipt, ControlApplied)
        assert receipt.control == command
        assert {d.name: d.value for d in session.view.parameters}["lora_ink"] == 0.8
        with pytest.raises(CommandError) as refused:
            await session.update(lora_ink=1.6)
        assert (refused.value.code, refused.value.field) == ("out_of_range", "parameters.lora_ink")
