"""Language models with scripted replies."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from haystack.components.generators.chat.mock import MockChatGenerator
from haystack.dataclasses import ChatMessage

from components.models.calls import Tier
from components.models.chat import ChatModels
from components.models.chat_call import OnText
from components.models.failures import ModelFailed

Reply: TypeAlias = str | Mapping[str, object] | ModelFailed
"""A text, a form, or how the call fails."""
Said: TypeAlias = Callable[[Sequence[ChatMessage]], Reply] | Sequence[Reply] | Reply


class ScriptedModels(ChatModels):
    """Answers each step as scripted: by a function of the messages, with a list of replies, or always the same.

    `asked` holds the steps in the order of their calls, `messages` their prompts, `prompts_used` the prompts' labels.
    """

    def __init__(self, **said: Said) -> None:
        ChatModels.__init__(self, MockChatGenerator())
        self.said = said
        self.asked: list[str] = []
        self.messages: list[Sequence[ChatMessage]] = []
        self.tiers: list[Tier] = []
        self.prompts_used: list[str] = []

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        step: str,
        prompt: str,
        temperature: float,
        tier: Tier = "fast",
        schema: Mapping[str, object] | None = None,
        on_text: OnText | None = None,
    ) -> str:
        said = self.said[step]
        if callable(said):
            reply = said(messages)
        elif isinstance(said, str | Mapping | ModelFailed):
            reply = said
        else:
            reply = said[min(self.asked.count(step), len(said) - 1)]
        self.asked.append(step)
        self.messages.append(messages)
        self.tiers.append(tier)
        self.prompts_used.append(prompt)
        if isinstance(reply, ModelFailed):
            raise reply
        written = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        if on_text is not None:
            on_text(written[:5])
            on_text(written[5:])
        return written


DOWN = ModelFailed("server_error")
"""The failure of a provider that is out of order."""
