"""Files that are not checkpoints are refused with this project's own errors."""

from pathlib import Path

import pytest
import torch

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoints import CheckpointManifest

ANY = CheckpointManifest("any", ("*",))


@pytest.mark.parametrize("content", [b"", b"some text", b"\x00\x00\x00\x18ftypmp42"])
def test_what_is_no_checkpoint_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.mp4"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"text\.mp4 is not a supported checkpoint"):
        ANY.tensors((path,))


def test_what_torch_has_saved_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    torch.save({"a": torch.ones(2)}, path)
    assert ANY.tensors((path,))["a"].shape == (2,)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="No such file"):
        ANY.tensors((tmp_path / "none.pt",))
