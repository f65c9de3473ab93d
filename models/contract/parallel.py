"""How a model could be spread over devices, and how an operator asks for it.

This version runs each instance on one device, so `ONE_DEVICE` is the only plan that a deployment
can ask for. A model's description says what its sizes would allow.
"""

from dataclasses import dataclass, fields

from reverie.models.contract.errors import OptionError


@dataclass(frozen=True, slots=True)
class ParallelPlan:
    """Devices that an instance is asked to use; their number is the product.

    Attributes:
        tensor: devices that share the heads of every layer.
        sequence: devices that share the tokens of a call.
        data: devices that each hold the whole model and other sessions.
    """

    tensor: int = 1
    sequence: int = 1
    data: int = 1


ONE_DEVICE = ParallelPlan()


@dataclass(frozen=True, slots=True)
class ParallelSpec:
    """Into how many parts a model can be split: a plan's degree must divide it; 1 cannot be split.

    Attributes:
        tensor: attention heads of every layer.
        sequence: tokens of the shortest call.
        data: copies of the model.
    """

    tensor: int = 1
    sequence: int = 1
    data: int = 1

    def require(self, plan: ParallelPlan, model: str) -> None:
        """Refuse a plan that the model cannot follow.

        Raises:
            OptionError: names the field.
        """
        for field in fields(plan):
            degree, parts = getattr(plan, field.name), getattr(self, field.name)
            where = f"parallel.{field.name}"
            if degree < 1:
                raise OptionError(f"{where} must be at least 1, not {degree}")
            if degree > 1 and parts == 1:
                raise OptionError(f"{where} must be 1: {model} cannot be split that way")
            if parts % degree:
                what = _PARTS[field.name]
                raise OptionError(
                    f"{where} must divide the {parts} {what} of {model}, not {degree}"
                )


UNSPLIT = ParallelSpec()


def require_one_device(plan: ParallelPlan) -> None:
    """Refuse what this version has no code for.

    Raises:
        OptionError: names the field.
    """
    for field in fields(plan):
        if (degree := getattr(plan, field.name)) != 1:
            raise OptionError(
                f"parallel.{field.name} must be 1, not {degree}: this version runs a "
                "model on one device"
            )


_PARTS = {"tensor": "attention heads", "sequence": "tokens of a call", "data": "copies"}
