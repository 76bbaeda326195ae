"""Help pages in the language of the terminal.

Typer 0.29 has its own words for headings, types and placeholders, in English and without a way to replace them, so its
module-level names and private classes are used here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from typer._click.core import Command as ClickCommand
from typer.core import TyperArgument, TyperOption

from components.language.texts import keys, terminal_locale, text

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

_PLACEHOLDERS = {"[OPTIONS]": "options_place", "COMMAND [ARGS]...": "command_place"}


class TranslatedHelp(ClickCommand):
    """A command whose help page is in the language of the terminal."""

    def format_usage(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        pieces = [
            _say(_PLACEHOLDERS[piece]) if piece in _PLACEHOLDERS else piece for piece in self.collect_usage_pieces(ctx)
        ]
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=_say("usage") + " ")

    def get_help_option(self, ctx: "Context") -> TyperOption | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = _say("help")
        return option

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        from typer import rich_utils

        for panel in ("arguments", "options", "commands"):
            setattr(rich_utils, f"{panel.upper()}_PANEL_TITLE", _say(panel))
        rich_utils.DEFAULT_STRING = f"[{_say('default')}: {{}}]"
        rich_utils.REQUIRED_LONG_STRING = f"[{_say('required')}]"
        for parameter in self.get_params(ctx):
            if isinstance(parameter, TyperArgument | TyperOption):
                vars(parameter)["display_type_rich"] = _TypeName(parameter.display_type_rich)
        super().format_help(ctx, formatter)


class _TypeName:
    """Name the type of a parameter in the language of the terminal, in place of Python's name."""

    def __init__(self, python_name: Callable[["Context"], str | None]) -> None:
        self._python_name = python_name

    def __call__(self, ctx: "Context") -> str | None:
        shown = self._python_name(ctx)
        if shown is None or not (shown.startswith("<") and shown.endswith(">")):
            return shown
        python = shown[1:-1]
        if python == "bool":  # a flag takes no value
            return None
        element = python.removeprefix("list[").removesuffix("]")
        key = f"cli.help_page.type.{element.removesuffix(' range')}"
        name = text(key, terminal_locale()) if key in keys(key) else element
        return name if element == python else f"{name}…"


def _say(key: str) -> str:
    return text(f"cli.help_page.{key}", terminal_locale())
