"""Redis' protocol, both versions; keeps every reply as it arrived."""

import socket

# Longer than any reply takes, to distinguish a silent server from a slow one.
SECONDS_MAX = 60


LISTENING = ["subscribe", "psubscribe", "ssubscribe", "client", "monitor"]
UNASKED = ["message", "pmessage", "smessage", "invalidate"]
QUEUED = [["-", "ERR WATCH inside MULTI is not allowed"], ["+", "QUEUED"]]


class Closed(Exception):
    pass


def encode(request):
    words = [word if isinstance(word, bytes) else str(word).encode("latin-1") for word in request]
    if words and words[0] == b"RAW":
        return words[1]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.is_open = True
        # True if messages may arrive at any time.
        self.listens = False
        self.pushed = []
        # True if the client may be between MULTI and EXEC.
        self.may_queue = False

    def close(self):
        self.socket.close()

    def ask(self, words):
        self.socket.sendall(encode(words))
        return self.reply()

    def fill(self):
        try:
            more = self.socket.recv(1 << 16)
        except ConnectionResetError:
            more = b""
        if not more:
            raise Closed
        self.buffer += more

    def line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def take(self, count):
        while len(self.buffer) < count + 2:
            self.fill()
        taken, self.buffer = self.buffer[:count], self.buffer[count + 2 :]
        return taken

    def reply(self):
        """Returns the next reply. Pushed messages are kept separately: their position between or within replies has no meaning."""
        line = self.line()
        kind, text = line[:1].decode("latin-1"), line[1:].decode("latin-1")
        if kind in "$=!":
            return [kind, None if text == "-1" else self.take(int(text)).decode("latin-1")]
        if kind in "*~>%|":
            count = int(text)
            times = 2 if kind in "%|" else 1
            parts = None if count < 0 else [self.reply() for _ in range(times * count)]
            if kind == ">" and parts[0][1] in UNASKED:
                self.pushed.append([kind, parts])
                return self.reply()
            return [kind, parts]
        return [kind, text]

    def exchange(self, requests, mark):
        """Sends requests and a final one that changes nothing; returns everything that arrives up to its reply."""
        if not self.is_open:
            return ["closed"]
        names = [str(request[0]).lower() for request in requests]
        self.may_queue |= "multi" in names
        self.listens |= any(name in LISTENING for name in names)
        said = self.until(requests, mark)
        if self.listens:
            # Messages that a client causes itself may follow the reply.
            said += self.until([], f"{mark}-again")
        pushed, self.pushed = self.pushed, []
        return [said, pushed]

    def until(self, requests, mark):
        said = []
        # Between MULTI and EXEC a PING is queued, and WATCH is refused immediately.
        last = [["WATCH", mark], ["PING", mark]] if self.may_queue else [["PING", mark]]
        try:
            self.socket.sendall(b"".join(map(encode, [*requests, *last])))
            while said[-2:] != QUEUED:
                said.append(self.reply())
                if mark in repr(said[-1]):
                    self.may_queue = False
                    break
        except (Closed, BrokenPipeError, ConnectionResetError):
            self.is_open = False
            said.append("closed")
        except TimeoutError:
            self.is_open = False
            said.append("no answer")
        return said


def shown(value):
    text = repr(value)
    return text if len(text) < 2000 else text[:2000] + "…"
