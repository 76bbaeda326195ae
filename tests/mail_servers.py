"""Mail servers on the loopback interface, as small as tests need: SMTP that keeps its e-mails, and an IMAP folder."""

import re
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from threading import Thread


@dataclass
class MailServer:
    """An SMTP server. `refusal` is its answer to each recipient, if set; `received` are the e-mails that it took."""

    port: int = 0
    refusal: str = ""
    received: list[EmailMessage] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)


@dataclass
class MailFolder:
    """An IMAP server with one folder. `seen` are the UIDs that were marked as read, `sent_bytes` those of bodies."""

    port: int = 0
    sent_bytes: int = 0
    mails: list[bytes] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)


@contextmanager
def receiving_mail() -> Iterator[MailServer]:
    """Run an SMTP server."""
    state = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            while line := self.rfile.readline().decode().strip():
                command = line.upper()
                if command.startswith("EHLO"):
                    self._say("250-test\r\n250 SMTPUTF8")
                elif command.startswith("RCPT") and state.refusal:
                    self._say(state.refusal)
                elif command == "DATA":
                    self._say("354 go on")
                    state.raw.append(self._mail())
                    state.received.append(message_from_bytes(state.raw[-1], policy=default))
                    self._say("250 taken")
                elif command == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 ok")

        def _mail(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            return b"".join(lines)

        def _say(self, answer: str) -> None:
            self.wfile.write(f"{answer}\r\n".encode())

    with _serving(Handler) as state.port:
        yield state


@contextmanager
def holding_mail() -> Iterator[MailFolder]:
    """Run an IMAP server."""
    state = MailFolder()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("* OK test")
            while line := self.rfile.readline().decode().strip():
                tag, _, command = line.partition(" ")
                self._answer(command)
                self._say(f"{tag} OK done")
                if command.upper() == "LOGOUT":
                    return

        def _answer(self, command: str) -> None:
            if command.upper() == "CAPABILITY":
                self._say("* CAPABILITY IMAP4rev1")
            elif command.upper().startswith("SELECT"):
                self._say(f"* {len(state.mails)} EXISTS\r\n* OK [UIDVALIDITY 1] valid")
            elif match := re.match(r"UID SEARCH UID (\d+):\* UNSEEN", command, re.IGNORECASE):
                first = min(int(match[1]), max(len(state.mails), 1))
                uids = [uid for uid in range(first, len(state.mails) + 1) if uid not in state.seen]
                self._say(f"* SEARCH {' '.join(map(str, uids))}")
            elif match := re.match(r"UID FETCH ([\d,]+) \(UID BODY.PEEK\[HEADER", command, re.IGNORECASE):
                for uid in match[1].split(","):
                    head = state.mails[int(uid) - 1].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
                    self._say(f"* {uid} FETCH (UID {uid} BODY[HEADER.FIELDS (REFERENCES)]<0> {{{len(head)}}}")
                    self.wfile.write(head)
                    self._say(")")
            elif match := re.match(r"UID FETCH (\d+) .*<0\.(\d+)>", command, re.IGNORECASE):
                content = state.mails[int(match[1]) - 1][: int(match[2])]
                state.sent_bytes += len(content)
                self._say(f"* {match[1]} FETCH (UID {match[1]} BODY[]<0> {{{len(content)}}}")
                self.wfile.write(content)
                self._say(")")
            elif match := re.match(r"UID STORE (\d+) \+FLAGS \(\\Seen\)", command, re.IGNORECASE):
                state.seen.add(int(match[1]))

        def _say(self, answer: str) -> None:
            self.wfile.write(f"{answer}\r\n".encode())

    with _serving(Handler) as state.port:
        yield state


@contextmanager
def _serving(handler: type[socketserver.StreamRequestHandler]) -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
