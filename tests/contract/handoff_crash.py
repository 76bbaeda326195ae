"""Handoffs killed with SIGKILL before each statement, and before and after the commit, each in a separate process.

A program for `test_handoff_kill.py`. Imports happen once: this process forks a child per handoff and never opens the
database itself. It prints the chat of each child, one a line, until a child survives its handoff.
"""

import os
import signal
import sys
from itertools import count
from unittest.mock import patch

from sqlalchemy import event

from tenants.chats import fanout, store
from tenants.chats.records import BotReply, HandoffRequest
from tenants.core.context import Tenant, acting_as
from tenants.storage import database

VISITOR = Tenant("acme", "v:1")


def main() -> None:
    """Kill one more handoff at each moment, until one survives."""
    for moment in count(1):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            hand_over(moment, writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            chat_id = pipe.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            print(chat_id, flush=True)
            continue
        sys.exit(os.waitstatus_to_exitcode(status))


def hand_over(moment: int, pipe: int) -> None:
    """Begin a chat, name it, and die at this moment of its handoff; leave if it is over before."""
    with acting_as(VISITOR):
        chat = store.start()
        store.post(chat.chat_id, "Верните деньги")
        os.write(pipe, chat.chat_id.encode())
        moments = count(1)

        def live_or_die(*_: object) -> None:
            if next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(database.engine(), "before_cursor_execute", live_or_die)
        event.listen(database.engine(), "commit", live_or_die)
        patch.object(fanout, "announce", live_or_die).start()  # after the commit
        store.hand_over(
            chat.chat_id,
            HandoffRequest("complaint", question="Верните деньги"),
            version=chat.version,
            reply=lambda ticket: BotReply(f"Обращение {ticket.ticket_id} создано.", {}),
        )
        os._exit(0)


if __name__ == "__main__":
    main()
