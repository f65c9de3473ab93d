"""A language model for tests of agents: it calls the tools that a script says, then says a word."""

import json
from collections.abc import Sequence
from typing import Any

from livekit.agents import llm

Call = tuple[str, dict[str, Any]]


class ScriptedLlm(llm.LLM[str]):
    """Answers the first request with calls of tools, and the one that has their outputs with text.

    Attributes:
        outputs: what the tools returned.
        offered: the names of the tools that it was offered.
    """

    def __init__(self, *calls: Call) -> None:
        super().__init__()
        self.outputs: list[str] = []
        self.offered: list[str] = []
        self._calls: Sequence[Call] = calls

    def chat(self, *, chat_ctx: llm.ChatContext, **options: Any) -> llm.LLMStream:
        """Answer whatever was said last."""
        tools: list[llm.Tool] = options.get("tools") or []
        self.offered = [each.info.name for each in tools if isinstance(each, llm.FunctionTool)]
        last = chat_ctx.items[-1]
        calls = () if last.type == "function_call_output" else self._calls
        outputs = [each for each in chat_ctx.items if each.type == "function_call_output"]
        self.outputs = [each.output for each in outputs]
        return _Stream(
            self, calls, chat_ctx=chat_ctx, tools=tools, conn_options=options["conn_options"]
        )


class _Stream(llm.LLMStream):
    def __init__(self, model: ScriptedLlm, calls: Sequence[Call], **options: Any) -> None:
        super().__init__(model, **options)
        self._script = calls

    async def _run(self) -> None:
        wanted = [
            llm.FunctionToolCall(
                name=name, arguments=json.dumps(arguments), call_id=f"call{number}"
            )
            for number, (name, arguments) in enumerate(self._script)
        ]
        said = None if wanted else "Done."
        delta = llm.ChoiceDelta(role="assistant", content=said, tool_calls=wanted)
        self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))
