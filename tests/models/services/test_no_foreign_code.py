"""Code in a checkpoint is never run, even if a prompt to run it is accepted."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from wan_folders import original, write_rest

from reverie.models.causal_lm.checkpoint.loading import random_model

CODE = """
from pathlib import Path
from transformers import PreTrainedTokenizerFast, LlamaConfig, LlamaForCausalLM

Path(__file__).with_name("ran").write_text("yes")
Path({mark!r}).write_text("yes")


class Tokenizer(PreTrainedTokenizerFast):
    pass


class Config(LlamaConfig):
    model_type = "foreign"


class Model(LlamaForCausalLM):
    config_class = Config
"""

LOAD = """
import sys
from reverie.models.contract.errors import ModelError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.registry import find_family

family = find_family(sys.argv[1])
for look in (
    lambda: family.check(sys.argv[2]),
    lambda: family.load(LoadOptions(device="cpu", checkpoint=sys.argv[2], sessions=1)),
):
    try:
        look()
    except ModelError as error:
        print("refused:", error)
print("done")
"""

pytestmark = pytest.mark.timeout(600)  # each imports the libraries again


def wan(folder: Path) -> Path:
    original(folder)
    write_rest(folder)
    return folder / "tokenizer"


def causal_lm(folder: Path) -> Path:
    model, tokenizer = random_model()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def foreign(tokenizer: Path, mark: Path, known: bool) -> None:
    """Have a tokenizer ask for a class of its own, whose name the library may know as well."""
    (tokenizer / "foreign.py").write_text(CODE.format(mark=str(mark)))
    path = tokenizer / "tokenizer_config.json"
    asked: dict[str, object] = {"auto_map": {"AutoTokenizer": [None, "foreign.Tokenizer"]}}
    asked["tokenizer_class"] = "PreTrainedTokenizerFast" if known else "Tokenizer"
    path.write_text(json.dumps(json.loads(path.read_text()) | asked))


def foreign_model(folder: Path) -> None:
    path = folder / "config.json"
    asked = {
        "model_type": "foreign",
        "auto_map": {
            "AutoConfig": "foreign.Config",
            "AutoModelForCausalLM": "foreign.Model",
        },
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | asked))


def loaded(family: str, folder: Path) -> str:
    """Check and load a checkpoint, with a terminal that answers yes to every question."""
    ended = subprocess.run(
        [sys.executable, "-c", LOAD, family, str(folder)],
        input="y\n" * 20,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.endswith("done\n"), ended.stderr
    assert "trust_remote_code" not in ended.stdout
    return ended.stdout


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("write", [wan, causal_lm])
def test_a_tokenizer_with_code_of_its_own_never_runs_it(
    write: Callable[[Path], Path], known: bool, tmp_path: Path
) -> None:
    folder, mark = tmp_path / "folder", tmp_path / "mark"
    folder.mkdir()
    tokenizer = write(folder)
    foreign(tokenizer, mark, known)
    told = loaded(write.__name__, folder)
    assert not mark.exists()
    assert not (tokenizer / "ran").exists()
    assert ("refused" in told) is not known
    assert known or "it needs its own code (auto_map), and code of a checkpoint" in told


def test_a_model_with_code_of_its_own_is_refused_and_never_runs_it(tmp_path: Path) -> None:
    folder, mark = tmp_path / "folder", tmp_path / "mark"
    folder.mkdir()
    causal_lm(folder)
    foreign(folder, mark, known=False)
    foreign_model(folder)
    told = loaded("causal_lm", folder)
    assert not mark.exists()
    assert told.count("refused:") == 2
    assert "model_type 'foreign' is not a decoder-only language model" in told
