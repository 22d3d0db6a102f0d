"""The processes of a fleet: three servers and a proxy before them, with the configurations of docs/fleet.md."""

import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
SHARD_COUNT = 3
# The ports in the page's configurations.
PAGE_SHARD_PORT, PAGE_PROXY_PORT = 7001, 6380
# Lines that turn a page's configuration into the broken variant: the proxy gives a dead server's keys to the others.
EJECTING = {
    "envoy": (
        "lb_policy: MAGLEV",
        "lb_policy: MAGLEV\n"
        "    outlier_detection: {consecutive_5xx: 1, base_ejection_time: 600s, interval: 0.01s, max_ejection_percent: 100}\n"
        "    common_lb_config: {healthy_panic_threshold: {value: 0}}",
    ),
    "twemproxy": (
        "auto_eject_hosts: false",
        "auto_eject_hosts: true\n  server_failure_limit: 1\n  server_retry_timeout: 600000",
    ),
}
# Lines of the page that a configuration with a password has in addition, each with the line that it precedes.
PASSWORD = "PASSWORD"
AUTHENTICATING = {
    "envoy": [
        ("          custom_commands:", "          downstream_auth_passwords: [{inline_string: PASSWORD}]\n"),
        (
            "    load_assignment:",
            "    typed_extension_protocol_options:\n"
            "      envoy.filters.network.redis_proxy:\n"
            '        "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions\n'
            "        auth_password: {inline_string: PASSWORD}\n",
        ),
    ],
    "twemproxy": [("  hash:", "  redis_auth: PASSWORD\n")],
}
# The proxy is polled until it listens.
LOOK_SECONDS, LOOK_COUNT_MAX = 0.05, 600
REPLY_SECONDS_MAX = 20


class Difference(Exception):
    """An observation that contradicts the page."""


def connect(port, password=None):
    """Returns a client that sends at most `AUTH` by itself: proxies refuse `HELLO 3` and `CLIENT SETINFO`."""
    quiet = {"protocol": 2, "lib_name": None, "lib_version": None}
    return Redis(port=port, password=password, retry=Retry(NoBackoff(), 0), socket_timeout=REPLY_SECONDS_MAX, **quiet)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server of one shard, whose store outlives its process."""

    def __init__(self, program, store, password_file=None):
        self.program, self.store, self.port = program, store, 0
        self.options = ["--password-file", password_file] if password_file else []
        self.password = PASSWORD if password_file else None
        self.start()

    def start(self):
        """Starts the server on its port, or on a free one if it has none."""
        command = [self.program, "serve", self.store, "--addr", f"127.0.0.1:{self.port}", *self.options]
        with open(f"{self.store}.log", "a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.process.stdout:
            found = re.match(r"\s*address\s+127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                self.client = connect(self.port, self.password)
                return
        raise Difference(f"the server of {self.store} did not start on port {self.port}")

    def end(self, kind):
        self.client.close()
        self.process.send_signal(kind)
        self.process.wait()
        self.process.stdout.close()

    def move(self, store):
        """Stops the server and serves its files from another place, on another port."""
        self.end(signal.SIGTERM)
        shutil.move(self.store, store)
        self.store, self.port = store, 0
        self.start()


class Proxy:
    """A proxy that is configured as on the page; `ejects` makes the broken variant."""

    def __init__(self, kind, program, place, ports, ejects, password):
        self.port, self.password = free_port(), password
        language = re.search(rf"<!-- {kind} -->\n+```yaml\n(.*?)```", PAGE.read_text(), re.S)
        if not language:
            raise Difference(f"{PAGE.name} has no configuration of {kind}")
        text = language[1].replace(str(PAGE_PROXY_PORT), str(self.port))
        for number, port in enumerate(ports):
            text = text.replace(str(PAGE_SHARD_PORT + number), str(port))
        if ejects:
            text = text.replace(*EJECTING[kind])
        for line, added in AUTHENTICATING[kind] if password else []:
            if added not in PAGE.read_text():
                raise Difference(f"{PAGE.name} does not have the lines {added!r}")
            text = text.replace(line, added + line)
        config = place / f"{kind}.yaml"
        config.write_text(text)
        with open(place / f"{kind}.log", "ab") as log:
            self.process = subprocess.Popen(self.command(kind, program, config), stdout=log, stderr=log)
        self.wait_until_ready(config)

    @staticmethod
    def command(kind, program, config):
        if kind == "envoy":
            return [program, "-c", config, "--disable-hot-restart", "--log-level", "warning"]
        return [program, "-c", config, "-s", str(free_port())]

    def wait_until_ready(self, config):
        for _ in range(LOOK_COUNT_MAX):
            if self.process.poll() is not None:
                break
            try:
                client = connect(self.port, self.password)
                client.ping()
                return client.close()
            except RedisError:
                time.sleep(LOOK_SECONDS)
        raise Difference(f"the proxy does not run; its log is beside {config}")

    def end(self):
        self.process.terminate()
        self.process.wait()


class Fleet:
    """Three servers and a proxy."""

    def __init__(self, hikv, kind, proxy, place, ejects=False, password_file=None):
        self.kind, self.proxy_program, self.place, self.ejects = kind, proxy, place, ejects
        self.password = PASSWORD if password_file else None
        self.servers, self.proxy = [], None
        try:
            for number in range(SHARD_COUNT):
                self.servers.append(Server(hikv, str(place / f"shard-{number}"), password_file))
            self.start_proxy()
        except BaseException:
            self.__exit__()
            raise

    def start_proxy(self):
        ports = [server.port for server in self.servers]
        self.proxy = Proxy(self.kind, self.proxy_program, self.place, ports, self.ejects, self.password)

    def restart_proxy(self):
        self.proxy.end()
        self.start_proxy()

    def connect(self):
        return connect(self.proxy.port, self.password)

    def owners(self, key):
        """Returns the numbers of the servers that hold a key."""
        return [number for number, server in enumerate(self.servers) if server.client.exists(key)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proxy:
            self.proxy.end()
        for server in self.servers:
            server.end(signal.SIGKILL)
