"""A generated world in every room of a LiveKit server: `python agent.py dev`.

Worlds come from the reverie server at `REVERIE_URL`; `WORLD_PROMPT` and `WORLD_PROGRAM` say what
they are. With `WORLD_LLM`, such as `openai/gpt-4.1-mini`, a language model reads the chat and plays
by the world's tools; without, each line of the chat is what the world becomes.
"""

import os

from livekit.agents import NOT_GIVEN, Agent, AgentServer, AgentSession, JobContext, cli, room_io
from livekit.plugins import reverie

PROMPT = os.environ.get("WORLD_PROMPT", "a frozen lake land")
PROGRAM = os.environ.get("WORLD_PROGRAM", NOT_GIVEN)
PLAYER = "You play in a small world with somebody. Use your tools, and say briefly what you do."

server = AgentServer()


@server.rtc_session()
async def entry(ctx: JobContext) -> None:
    """Show a world in the room of a job, for as long as there is anybody for it."""
    await ctx.connect()
    world = reverie.WorldSession(program=PROGRAM, prompt=PROMPT)
    world.on("world_ended", lambda ending: ctx.shutdown(ending.reason))
    llm = os.environ.get("WORLD_LLM")
    session = AgentSession(llm=llm) if llm else AgentSession()
    await world.start(session, ctx.room)
    options = world.room_options()
    if llm:  # the chat is for the model, which answers in it
        options.text_input = room_io.TextInputOptions()
        options.text_output = True
    await session.start(Agent(instructions=PLAYER, tools=world.tools), room=ctx.room,
                        room_options=options)  # fmt: skip


if __name__ == "__main__":
    cli.run_app(server)
