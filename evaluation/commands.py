"""`opora evaluate`: its commands, each imported when it runs."""

from typing import TYPE_CHECKING, Any

import typer

from evaluation.datasets import DATA_SETS
from ui.cli.terminal import Group, LazyCommand, texts

if TYPE_CHECKING:
    from typer._click.core import Context

message = texts("evaluation")
_MEASURE = "run"
_PLACES = {
    _MEASURE: "measure_commands:run",
    "answers": "measure_commands:answers",
    "report": "report_commands:report",
    "compare": "report_commands:compare",
    "calibrate": "report_commands:calibrate",
    "runs": "report_commands:runs",
    "phoenix": "report_commands:phoenix",
}


class MeasureByDefault(Group):
    """`opora evaluate fixture` measures: what is no command of the group is the name of something to measure."""

    def __init__(self, **params: Any) -> None:  # noqa: ANN401 - as Typer calls it
        super().__init__(**params)
        self.commands = {
            name: LazyCommand(name, f"evaluation.{place}", message(f"help.{name}", names=", ".join(DATA_SETS)))
            for name, place in _PLACES.items()
        }

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "--help"}:
            args = [_MEASURE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=MeasureByDefault, no_args_is_help=True, add_completion=False)


@app.callback()
def keep_names() -> None:
    """Register the group, which Typer requires."""
