"""Whether a connection still carries a track that was published over it.

After a loss the SDK publishes tracks anew by itself. Where that fails, it keeps the publication as
if nothing had happened, and only a question about the track itself tells.
"""

import asyncio

from livekit import rtc


async def is_carried(published: rtc.LocalTrackPublication, limit_s: float) -> bool:
    """Tell whether a published track still has a place in the connection.

    Args:
        limit_s: for the SDK to answer; a track of which it does not tell counts as carried.
    """
    if published.track is None:
        return False
    try:
        async with asyncio.timeout(limit_s):
            await published.track.get_stats()
    except TimeoutError:
        return True
    except Exception:  # the SDK has no narrower one for a track without a place
        return False
    return True
