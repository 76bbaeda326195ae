"""`python -m evaluation.simulator`: listen until stopped. Prints the address, and takes knobs as JSON."""

import asyncio
import signal
from typing import Annotated

import typer

from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Simulator


def main(
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 11434,
    knobs: Annotated[str, typer.Option(help='JSON, such as {"first_token_ms": 200, "tokens_per_second": 50}.')] = "{}",
) -> None:
    """Serve Ollama's protocol and OpenAI's (under /v1) without a model."""
    asyncio.run(_serve(host, port, Knobs.model_validate_json(knobs)))


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
    typer.run(main)
