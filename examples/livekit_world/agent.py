"""A generated world in every room of a LiveKit server: `python agent.py dev`.

The reverie server at `REVERIE_URL` generates the worlds; `WORLD_PROMPT` and `WORLD_PROGRAM` choose
their prompt and program. With `WORLD_LLM`, such as `openai/gpt-4.1-mini`, a language model
reads the chat and plays with the world's tools; without, each line of the chat is a prompt.
"""

import logging
import os

from livekit.agents import NOT_GIVEN, Agent, AgentServer, AgentSession, APIError, JobContext, cli
from livekit.plugins import reverie_world

PROMPT = os.environ.get("WORLD_PROMPT", "a frozen lake land")
PROGRAM = os.environ.get("WORLD_PROGRAM", NOT_GIVEN)
PLAYER = "You play in a small world with other people. Use your tools, and say briefly what you do."

log = logging.getLogger("world")
server = AgentServer()


@server.rtc_session()
async def entry(ctx: JobContext) -> None:
    """Show a world in the room of a job, until the world has ended."""
    await ctx.connect()
    world = reverie_world.WorldSession(program=PROGRAM, prompt=PROMPT)
    world.on("world_ended", lambda ending: ctx.shutdown(ending.reason))
    llm = os.environ.get("WORLD_LLM")
    written = {"turn_detection": "manual"}  # the agent neither hears nor speaks
    session = AgentSession(llm=llm or NOT_GIVEN, vad=None, turn_handling=written)
    try:
        await world.start(session, ctx.room)
    except APIError as error:  # the room has been told
        log.error("no world for %s: %s", ctx.room.name, error.message)
        ctx.shutdown("no world")
        return
    agent, options = Agent(instructions=PLAYER, tools=world.tools), world.room_options(chat=not llm)
    await session.start(agent, room=ctx.room, room_options=options)


if __name__ == "__main__":
    cli.run_app(server)
