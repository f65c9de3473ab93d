"""Waiting for what no event tells of."""

import asyncio
from collections.abc import Callable

LIMIT_S = 40.0
"""How long a test waits for what must come; much longer than it takes, for a loaded machine."""


async def until(
    condition: Callable[[], object], what: str = "", *, limit_s: float = LIMIT_S
) -> None:
    """Return once `condition` holds.

    Args:
        condition: looked at again and again; must not block.
        what: what is waited for, for the message of the failure.
        limit_s: at most.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    try:
        async with asyncio.timeout(limit_s):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"waited {limit_s:g} s in vain for {what or condition}") from None
