"""What an operator decides about the pool. Every limit has a safe default."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from reverie.models.contract.instance import AdapterOption, LoadOptions
from reverie.models.contract.parallel import ParallelPlan

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class ParallelOptions(BaseModel):
    """Devices to spread a model over. This version runs each model on one: 1 everywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tensor: int = Field(default=1, ge=1, le=64, description="Devices that share attention heads.")
    sequence: int = Field(default=1, ge=1, le=64, description="Devices that share tokens.")
    data: int = Field(default=1, ge=1, le=64, description="Devices with sessions of their own.")

    def plan(self) -> ParallelPlan:
        """Return what a model's description is asked about."""
        return ParallelPlan(self.tensor, self.sequence, self.data)


class AdapterOptions(BaseModel):
    """A LoRA that is served with a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1,
        max_length=48,
        pattern=r"^[a-z0-9_]+$",
        description="Sessions choose its strength by the parameter lora_<name>.",
    )
    path: str = Field(min_length=1, max_length=4096, description="A file, or a folder of peft's.")
    merged: bool = Field(
        default=False,
        description="Part of the weights: there is no choice, and steps cost no more.",
    )
    strength: float | None = Field(
        default=None,
        ge=0,
        le=100,
        allow_inf_nan=False,
        description="What sessions begin with (null: 0, without it); of a merged one, its strength "
        "(null: 1).",
    )
    most: float = Field(
        default=2.0, gt=0, le=100, allow_inf_nan=False, description="Greatest strength to choose."
    )

    @model_validator(mode="after")
    def _begins_in_range(self) -> Self:
        if not self.merged and (self.strength or 0.0) > self.most:
            raise ValueError(f"strength {self.strength:g} is more than most, {self.most:g}")
        return self

    def option(self) -> AdapterOption:
        """Return what the family sees when it loads."""
        otherwise = 1.0 if self.merged else 0.0
        strength = otherwise if self.strength is None else self.strength
        return AdapterOption(self.name, self.path, self.merged, strength, self.most)


class ModelOptions(BaseModel):
    """One model to serve: it gets a worker of its own on its device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="What sessions call it.",
    )
    family: str = Field(
        default="",
        max_length=4096,
        description="An installed family, package.module:Name or path/to/file.py:Name; "
        "empty takes the family called `name`.",
    )
    device: str = Field(default="auto", max_length=64, description="auto, cpu, cuda, cuda:1, ...")
    precision: str = Field(
        default="auto",
        max_length=64,
        description="auto, or a type of number that the model takes, such as float32 or bfloat16.",
    )
    checkpoint: str | None = Field(default=None, description="Path to weights; null: those shipped")
    parts: str | None = Field(
        default=None, description="Folder of what else they need; null: next to them."
    )
    sessions: int = Field(
        default=4,
        ge=1,
        le=1024,
        description="Sessions that run at once, where the device has room for them.",
    )
    history_chunks: int = Field(
        default=8,
        ge=1,
        le=1024,
        description="Chunks kept to rewind to, where the device has room; as many as the "
        "longest lead has, where those are more.",
    )
    threads: int = Field(
        default=0, ge=0, le=1024, description="CPU threads for one step; 0: as the model chooses"
    )
    steps: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Denoise steps that sessions begin with; 0: as the model chooses.",
    )
    calibration_s: float = Field(
        default=2.0,
        ge=0,
        le=60,
        allow_inf_nan=False,
        description="Longest that a model may time itself on a CPU when it is loaded, to choose "
        "precision, threads and steps that are not named here; 0: it takes its plain choice.",
    )
    attention: str = Field(
        default="auto",
        max_length=64,
        description="auto, plain, products, sdpa, flash; triton reads cache blocks in place, "
        "where the model can.",
    )
    guidance: str = Field(
        default="auto",
        max_length=64,
        description="auto, one_batch, two_pass (least memory), adaptive (fewest passes); embedded "
        "where weights take the scale as an input.",
    )
    game: str = Field(
        default="auto",
        max_length=64,
        description="Which game the weights were trained on, where the model plays several; auto: "
        "as the checkpoint is called.",
    )
    parallel: ParallelOptions = Field(default=ParallelOptions())
    adapters: tuple[AdapterOptions, ...] = Field(
        default=(), max_length=16, description="LoRAs, where the model takes any."
    )
    decoder: str = Field(
        default="",
        max_length=64,
        description="Another decoder of latents, by its kind, such as taehv; empty: the model's.",
    )
    decoder_path: str | None = Field(default=None, description="Path to that decoder's weights.")
    context: int = Field(
        default=0,
        ge=0,
        le=16_777_216,
        description="Tokens that a language model attends to; 0: as many as the model can, where "
        "the memory is there for `sessions` of them.",
    )
    max_batch: int = Field(default=8, ge=1, le=1024, description="Sessions in one forward pass.")

    def load_options(self) -> LoadOptions:
        """Return the part that the family sees when it loads."""
        return LoadOptions(
            device=self.device,
            precision=self.precision,
            checkpoint=self.checkpoint,
            parts=self.parts,
            sessions=self.sessions,
            history_chunks=self.history_chunks,
            threads=self.threads,
            attention=self.attention,
            guidance=self.guidance,
            game=self.game,
            parallel=self.parallel.plan(),
            adapters=tuple(adapter.option() for adapter in self.adapters),
            decoder=self.decoder,
            decoder_path=self.decoder_path,
            context=self.context,
            steps=self.steps,
            calibration_s=self.calibration_s,
        )

    @model_validator(mode="after")
    def _adapters_have_names_of_their_own(self) -> Self:
        names = [adapter.name for adapter in self.adapters]
        if len(set(names)) < len(names):
            raise ValueError(f"an adapter name is used twice: {', '.join(sorted(names))}")
        return self


class PoolOptions(BaseModel):
    """All models, and how patient the pool is with their workers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["process", "inline"] = Field(
        default="process",
        description="process: a worker process a model; inline: the same code on a thread.",
    )
    models: tuple[ModelOptions, ...] = Field(min_length=1, max_length=64)
    step_limit_s: Seconds = Field(
        default=30.0, description="Longest that one unit may run, or a message wait."
    )
    prompt_limit_s: Seconds = Field(
        default=30.0, description="Longest that reading a prompt may take, its wait included."
    )
    load_limit_s: Seconds = Field(default=300.0, description="Longest that loading may take.")
    ask_limit_s: Seconds = Field(default=60.0, description="Longest wait for an answer.")
    stop_limit_s: Seconds = Field(default=5.0, description="Time to leave before a kill.")
    waiting_line: int = Field(default=16, ge=0, le=100_000, description="Sessions that may wait.")
    retry_after_s: Seconds = Field(default=10.0, description="What those beyond the line are told.")
    give_way: Literal["all", "unwatched", "none"] = Field(
        default="all",
        description="Sessions that end, unwatched ones first, when their owner or address holds two"
        " slots more than an account that waits.",
    )
    restarts: int = Field(
        default=5, ge=0, le=1000, description="Restarts within the window before giving a model up."
    )
    restart_window_s: Seconds = Field(default=600.0, description="In which restarts are counted.")
    restart_pause_s: Seconds = Field(default=0.5, description="Doubled by each restart in a row.")
    poison_chunks: int = Field(
        default=8,
        ge=1,
        description="A session under suspicion for two losses with fewer chunks between them fails",
    )
    slots_a_session: int = Field(default=2, ge=1, le=64, description="Frame slots in the ring.")
    send_queue: int = Field(default=10_000, ge=16, description="Unsent messages to a worker.")

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [model.name for model in self.models]
        if len(set(names)) < len(names):
            raise ValueError(f"a model name is used twice: {', '.join(sorted(names))}")
        return self


def crowded_threads(options: PoolOptions, cores: int) -> str:
    """Return a warning where the named threads of all workers are more than the cores, else ""."""
    named = [model for model in options.models if model.threads]
    wanted = sum(model.threads or 1 for model in options.models)
    if not named or wanted <= cores:
        return ""
    names = ", ".join(f"{model.name}: {model.threads}" for model in named)
    return (
        f"threads ({names}): the workers together compute with {wanted} CPU threads on {cores} "
        "cores; threads that wait for a core slow each other down. Without the setting each model "
        "chooses by a measurement"
    )
