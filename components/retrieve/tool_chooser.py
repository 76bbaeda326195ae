"""Choosing a tool by a language model, for questions that say in other words what a tool's description says."""

from collections.abc import Sequence

from components.language.normalise import clean, fold
from components.models.chat import ChatModels
from components.models.prompts import block
from components.models.structured import Form, fill
from components.retrieve.tool_arguments import Lookup, coerced
from components.serialisation import Nested
from tenants.core.json import Json
from tenants.core.patterns import compiled
from tenants.knowledge.tools import Property, Tool


class ArgumentForm(Form):
    """An argument and its value, written as in the question."""

    name: str
    value: str


class ToolForm(Form):
    """A tool by name, empty if no tool fits, and its arguments."""

    tool: str
    arguments: tuple[ArgumentForm, ...]


class LlmToolChooser(Nested):
    """Ask a language model which tool answers, and with which arguments.

    Its choice is checked against the tool's schema and the question. If a value is neither in the question nor listed
    in the schema, the model has invented it, and no tool is called.

    :param models: the models asked, always the `fast` one.
    """

    def __init__(self, models: ChatModels) -> None:
        self.models = models

    def choose(self, question: str, tools: Sequence[Tool], locale: str) -> Sequence[Lookup]:
        """Return the lookups for the question; empty if no tool fits.

        :raises ModelFailed: no model answered.
        """
        question = clean(question)
        form = fill(
            ToolForm,
            self.models,
            self.models.prompt("tool", locale),
            values={
                "question": block("question", question),
                "tools": block("tools", [_described(tool) for tool in tools]),
            },
            step="tools",
            tier="fast",
        )
        tool = next((candidate for candidate in tools if candidate.name == form.tool), None)
        if tool is None:
            return ()
        arguments: dict[str, Json] = {}
        for argument in form.arguments:
            schema = tool.parameters.properties.get(argument.name)
            value = _checked_value(schema, argument.value, question) if schema else None
            if value is None:
                return ()
            arguments[argument.name] = value
        return (Lookup(tool, arguments, 1.0),) if set(tool.parameters.required) <= arguments.keys() else ()


def _checked_value(schema: Property, text: str, question: str) -> str | int | float | None:
    """Return the value if it fits the schema and occurs in the question."""
    if schema.enum is not None:
        return text if text in schema.enum else None
    if fold(text.strip()) not in fold(question) or not text.strip():
        return None
    if schema.pattern is not None and not compiled(schema.pattern).fullmatch(text.strip()):
        return None
    return coerced(schema, text.strip())


def _described(tool: Tool) -> str:
    lines = [f"{tool.name}: {tool.title}. {tool.description}"]
    for name, schema in tool.parameters.properties.items():
        needed = "" if name in tool.parameters.required else "?"
        choices = f" ({' | '.join(schema.enum)})" if schema.enum else ""
        lines.append(f"- {name}{needed}: {schema.type}{choices} {schema.description}".rstrip())
    return "\n".join(lines)
