"""`python -m evaluation.simulator`: listen until stopped. Prints the address, and takes knobs as JSON."""

import asyncio
import signal
from typing import Annotated

import typer
from pydantic import ValidationError

from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Simulator

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
    asyncio.run(_serve(host, port, chosen))


async def _serve(host: str, port: int, knobs: Knobs) -> None:
    simulator = Simulator(knobs)
    server = await simulator.serve(host, port)
    bound, number = server.sockets[0].getsockname()[:2]
    typer.echo(f"http://{bound}:{number}")
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    await stopped.wait()
    await simulator.close(server)


if __name__ == "__main__":
    app()
