"""A model server that runs anywhere: Ollama's protocol and OpenAI's, answered by honest rules instead of a model.

It reads the fenced passages of a prompt, quotes the sentences that fit the question, grades passages and checks claims
by their words and numbers, and on request fails in every way that a real server fails. Its only knowledge is the
prompt; so a turn through it makes sense, and defects of a prompt show.

`python -m evaluation.simulator`: listen until stopped. Prints the address, and takes knobs as JSON.
"""

import signal
from typing import Annotated

import typer
from pydantic import ValidationError

from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Simulator, listening

app = typer.Typer(add_completion=False)


@app.command()
def main(
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 11434,
    knobs: Annotated[
        str, typer.Option(help=f'JSON, such as {{"tokens_per_second": 50}}. Knobs: {", ".join(Knobs.model_fields)}.')
    ] = "{}",
) -> None:
    """Serve Ollama's protocol and OpenAI's (under /v1) without a model."""
    try:
        chosen = Knobs.model_validate_json(knobs)
    except ValidationError as unfit:
        first = unfit.errors()[0]
        place = ".".join(map(str, first["loc"])) or "JSON"
        known = ", ".join(Knobs.model_fields)
        typer.echo(f"--knobs: {place}: {first['msg']}. Knobs: {known}", err=True)
        raise typer.Exit(2) from None
    try:
        bound = listening(host, port)
    except OSError as error:
        typer.echo(f"Port {port} is not available ({error.strerror}). Choose another: --port NUMBER", err=True)
        raise typer.Exit(1) from None
    with bound:
        address, number = bound.getsockname()[:2]
        typer.echo(f"http://{address}:{number}")
        for name in (signal.SIGTERM, signal.SIGINT):  # Uvicorn stops, then raises the signal again
            signal.signal(name, lambda *_: None)
        Simulator(chosen).server().run([bound])


if __name__ == "__main__":
    app()
