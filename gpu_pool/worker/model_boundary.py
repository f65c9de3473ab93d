"""Calls into a model for one session: what fails there is that session's alone."""

import logging

import torch

from reverie.engine.emissions import FaultCode
from reverie.engine.errors import EngineRefusedError
from reverie.engine.loop_status import Position
from reverie.gpu_pool.wire.session_messages import OpenSession, Request
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.worker_session import WorkerSession
from reverie.models.contract.errors import DeviceMemoryError
from reverie.models.services.device_errors import classify, retry_out_of_memory

logger = logging.getLogger(__name__)


def begin_session(
    model: LoadedModel, message: OpenSession, origin: WorkerSession | None
) -> WorkerSession | Exception:
    """Begin a session; return the error when that fails.

    Args:
        model: what it runs on.
        message: what it is opened with.
        origin: the session that it forks from.
    """
    device = model.instance.device
    try:
        return retry_out_of_memory(lambda: WorkerSession(model, message, origin), device)
    except (EngineRefusedError, DeviceMemoryError) as error:
        return error
    except Exception as error:
        told = classify(error, device)
        # A model that cannot begin this session may begin others.
        logger.exception("session %s could not be opened", message.session)
        return told


def refusal(error: Exception, otherwise: str) -> tuple[str, str]:
    """Return the code and the text of a refusal."""
    if isinstance(error, EngineRefusedError):
        return error.code, str(error)
    if isinstance(error, DeviceMemoryError):
        return FaultCode.OUT_OF_MEMORY, str(error)
    return otherwise, f"{type(error).__name__}: {error}"


def carry_out(
    worker_session: WorkerSession, message: Request, device: torch.device
) -> Position | Exception:
    """Carry out a request; return the error when that fails."""
    try:
        return worker_session.carry_out(message)
    except EngineRefusedError as error:
        return error
    except Exception as error:
        told = classify(error, device)
        # A model that cannot do this for one session may serve the others.
        logger.exception("session %s: %s failed", message.session, type(message).__name__)
        return told
