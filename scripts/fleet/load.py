"""Writers that number their writes, and the comparison of everything that was acknowledged with what the fleet holds."""

import threading

from redis.exceptions import RedisError

from fleet.processes import Difference

WRITER_COUNT = 4
KEYS_PER_WRITER = 150
PASS_SECONDS_MAX = 120


class Load:
    """The keys of all writers, each with the last number that was sent and the last that was acknowledged.

    A key belongs to one writer, which sends ever greater numbers. So a correct fleet holds a number from the acknowledged one to the
    sent one.
    """

    def __init__(self, fleet):
        self.fleet = fleet
        self.keys = [[f"key:{writer}:{number}" for number in range(KEYS_PER_WRITER)] for writer in range(WRITER_COUNT)]
        every = [key for keys in self.keys for key in keys]
        self.sent, self.acknowledged = dict.fromkeys(every, 0), dict.fromkeys(every, 0)
        self.refused = {}
        self.owner = {}

    def write(self, client, key):
        """Writes a key's next number, and returns whether it was acknowledged."""
        self.sent[key] += 1
        number = self.sent[key]
        try:
            client.set(key, number)
        except RedisError as error:
            self.refused[key] = str(error)
            return False
        self.acknowledged[key] = number
        return True

    def run_writers(self, body):
        """Calls `body(client, keys)` in one thread for each writer, and passes on the first error."""
        errors = []

        def run(keys):
            client = self.fleet.connect()
            try:
                body(client, keys)
            except BaseException as error:
                errors.append(error)
            finally:
                client.close()

        threads = [threading.Thread(target=run, args=(keys,)) for keys in self.keys]
        for thread in threads:
            thread.start()
        return threads, errors

    @staticmethod
    def join(threads, errors):
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def write_all(self):
        """Writes every key once; each write must be acknowledged."""

        def body(client, keys):
            for key in keys:
                if not self.write(client, key):
                    raise Difference(f"{key} was refused while all servers ran: {self.refused[key]}")

        self.join(*self.run_writers(body))

    def write_during_kill(self, victim, kill):
        """Writes while `kill` ends a server: then its keys are refused, all of them, and no others."""
        began, dead = threading.Barrier(WRITER_COUNT + 1, timeout=PASS_SECONDS_MAX), threading.Event()
        wrong = []

        def body(client, keys):
            # Writers are within a pass when the server dies, and make two more passes.
            is_waited_for = True
            while not dead.is_set():
                for key in keys:
                    if not self.write(client, key) and self.owner[key] != victim:
                        wrong.append(f"{key} was refused, although its server runs: {self.refused[key]}")
                if is_waited_for:
                    began.wait()
                    is_waited_for = False
            for key in keys * 2:
                is_done = self.write(client, key)
                if is_done and self.owner[key] == victim:
                    wrong.append(f"{key} was acknowledged, although its server is dead")
                elif not is_done and self.owner[key] != victim:
                    wrong.append(f"{key} was refused, although its server runs: {self.refused[key]}")

        threads, errors = self.run_writers(body)
        began.wait()
        kill()
        dead.set()
        self.join(threads, errors)
        if wrong:
            raise Difference(f"{len(wrong)} writes; the first: {wrong[0]}")

    def read_all_at_once(self, dead):
        """Reads all keys by one `MGET` while a server is dead: its keys must be errors, and never look absent."""
        client = self.fleet.connect()
        try:
            values = client.mget(list(self.sent))
        except RedisError:
            # The whole request is refused.
            return
        finally:
            client.close()
        for key, value in zip(self.sent, values):
            if isinstance(value, RedisError) != (self.owner[key] == dead) or value is None:
                raise Difference(f"MGET shows {value!r} for {key} of server {self.owner[key]} while server {dead} is dead")

    def read_during_hang(self, hung):
        """Reads while a server is stopped but not dead: a key of it is refused in the end, and other keys are served at once."""
        client = self.fleet.connect()
        keys = {owner: key for key, owner in self.owner.items()}
        try:
            client.get(keys.pop(hung))
        except RedisError:
            pass
        else:
            raise Difference("a stopped server's key is read")
        for key in keys.values():
            client.get(key)
        client.close()

    def find_owners(self):
        """Notes which server holds each key: one holds it, and each server holds a fair share."""
        for key in self.sent:
            owners = self.fleet.owners(key)
            if len(owners) != 1:
                raise Difference(f"{key} is on servers {owners}")
            self.owner[key] = owners[0]
        shares = [list(self.owner.values()).count(number) for number in range(len(self.fleet.servers))]
        if min(shares) * 6 < len(self.owner):
            raise Difference(f"the servers have {shares} keys")
        return shares

    def compare(self, when):
        """Compares every key, read through the proxy, with what was acknowledged, and its place with its owner."""
        client = self.fleet.connect()
        for key, acknowledged in self.acknowledged.items():
            value = int(client.get(key) or 0)
            if not acknowledged <= value <= self.sent[key]:
                raise Difference(f"{when}: {key} holds {value}; {acknowledged} was acknowledged, {self.sent[key]} sent last")
            if self.fleet.owners(key) != [self.owner[key]]:
                raise Difference(f"{when}: {key} is on servers {self.fleet.owners(key)}, and was on {self.owner[key]}")
        client.close()
