"""Services and commands in forked processes: the process that they are forked from has built a service (`warmed`).

Loading the modules and building one takes most of the time of a service's start, and nearly all of a short command's.
"""

import atexit
import json
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Thread
from types import MappingProxyType

from settings import ROOT, get_settings

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["app", "cli", "tests.warmed"])
_STOP_SECONDS = 60
_REQUEST_BYTES = 1_000_000
_SHIM = f"""#!{sys.executable} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forks:
    forks.connect(os.path.dirname(os.path.abspath(__file__)) + "/forks")
    socket.send_fds(forks, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
    sys.exit(int(forks.recv(16) or 1))
"""


def forked(
    function: str,
    *arguments: str,
    variables: Mapping[str, str],
    streams: Mapping[int, int],
    folder: Path = ROOT,
    constants: Mapping[str, float] = MappingProxyType({}),
) -> ForkServerProcess:
    """Call a function, `module.name`, in a separate process.

    :param arguments: those of its command line.
    :param variables: its environment variables.
    :param streams: open file descriptors by the number that the process has them under.
    :param constants: values for constants of modules, such as waits that a person would put up with.
    """
    given = {number: Connection(os.dup(stream), readable=False) for number, stream in streams.items()}
    process = _FORKS.Process(
        target=_run, args=(function, arguments, dict(variables), given, folder, dict(constants)), daemon=True
    )
    process.start()
    for stream in given.values():
        stream.close()
    return process


def _run(
    function: str,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    streams: Mapping[int, Connection],
    folder: Path,
    constants: Mapping[str, float],
) -> None:
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    get_settings.cache_clear()
    os.chdir(folder)
    for number, stream in streams.items():
        with stream:
            os.dup2(stream.fileno(), number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv[:] = ["opora", *arguments]
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        setattr(import_module(module), constant, value)
    module, _, name = function.rpartition(".")
    try:
        getattr(import_module(module), name)()
    finally:
        atexit._run_exitfuncs()


@contextmanager
def opora_in(folder: Path) -> Iterator[None]:
    """Provide a program `opora` in a folder for the length of the block; it runs its command in a forked process."""
    program = folder / "opora"
    program.write_text(_SHIM, encoding="utf-8")
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forks:
        forks.bind(str(folder / "forks"))
        forks.listen()
        Thread(target=_serve_commands, args=(forks,), daemon=True).start()
        try:
            yield
        finally:
            forks.shutdown(socket.SHUT_RDWR)


def _serve_commands(forks: socket.socket) -> None:
    while True:
        try:
            asking, _ = forks.accept()
        except OSError:
            return
        Thread(target=_serve_command, args=(asking,), daemon=True).start()


def _serve_command(asking: socket.socket) -> None:
    with asking:
        request, streams, _, _ = socket.recv_fds(asking, _REQUEST_BYTES, 3)
        if not request:
            return  # the program ended at once
        arguments, folder, variables = json.loads(request)
        process = forked(
            "cli.main", *arguments, variables=variables, streams=dict(enumerate(streams)), folder=Path(folder)
        )
        for stream in streams:
            os.close(stream)
        if asking in wait([process.sentinel, asking]):
            process.terminate()  # the program was ended, such as a service in the background
        process.join(_STOP_SECONDS)
        with suppress(BrokenPipeError):
            asking.send(str(process.exitcode).encode())
