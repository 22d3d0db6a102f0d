"""The commands of docs/fleet.md: each case goes to one server and to the fleet, and the replies are compared.

A case *works* if the fleet replies as one server does. It is *refused* if the fleet replies an error or closes the connection. It is
*wrong* if the fleet replies anything else: for example if keys that it has just written cannot be read. The keys `a` and `c` are on
different servers. Keys with a tag in braces are on the same one.
"""

import hashlib
import re

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from fleet.processes import PAGE, Difference, connect

INCREMENT = "return redis.call('incr', KEYS[1])"
# A script that no other case sends.
LOADED = "return redis.call('incrby', KEYS[1], 5)"
LOADED_SHA = hashlib.sha1(LOADED.encode()).hexdigest()
INCREMENT_BOTH = "redis.call('incr', KEYS[1]) return redis.call('incr', KEYS[2])"
ITEM_COUNT = 30


def requests(text):
    """Returns a function that sends the requests of `text`, one a line, and returns the replies."""
    split = [line.split() for line in text.splitlines()]
    return lambda client: [client.execute_command(*words) for words in split]


def tagged(text):
    """As `requests`, with keys `a` and `c` replaced by keys of one tag."""
    return requests(re.sub(r"\b([ac])\b", r"{t}\1", text))


def eval_both(first, second):
    return lambda client: [client.eval(INCREMENT_BOTH, 2, first, second), client.get(first), client.get(second)]


def load_script(client):
    client.script_load(LOADED)
    return [client.evalsha(LOADED_SHA, 1, f"key:{number}") for number in range(ITEM_COUNT)]


def walk(keys):
    """Returns a function that writes items and then returns the sorted result of `keys`."""

    def run(client):
        for number in range(ITEM_COUNT):
            client.set(f"key:{number}", number)
        return sorted(keys(client))

    return run


def ping_with_resp3(client):
    other = Redis(port=client.get_connection_kwargs()["port"], protocol=3, retry=Retry(NoBackoff(), 0))
    try:
        return [other.ping()]
    finally:
        other.close()


def emptied(client):
    client.flushall()
    return [number for number in range(ITEM_COUNT) if client.get(f"key:{number}")]


MSETNX = "MSETNX a 1 c 2\nGET a\nGET c"
RENAME = "SET a 1\nRENAME a c\nGET a\nGET c"
COPY = "SET a 1\nCOPY a c\nGET c"
BITOP = "SET a 1\nBITOP NOT c a\nGET c"
EXEC = "MULTI\nSET a 1\nSET c 2\nEXEC\nGET a\nGET c"
WATCH = "WATCH a\nSET a 2\nMULTI\nSET a 3\nEXEC\nGET a"
PUBLISH, SELECT, EXISTS = "`PUBLISH`", "`SELECT`", "`EXISTS`, `TOUCH` of several keys"
ANSWERED_BY_PROXY = [SELECT, EXISTS]
CASES = {
    "one key: `GET`, `SET`, `INCR`, `EXPIRE`, …": requests(
        "SET a 1 EX 100\nINCR a\nAPPEND a x\nSETBIT c 7 1\nGETRANGE a 0 1\nEXPIRE a 50\nPERSIST a\nDUMP a\nGETDEL a\nSTRLEN c"
    ),
    "`SET … DURABLE`": requests("SET a 1 DURABLE process\nGET a"),
    "`MGET`, `MSET`": requests("MSET a 1 c 2\nMGET a c e"),
    "`DEL`, `UNLINK`": requests("MSET a 1 c 2\nDEL a e c\nMSET a 1 c 2\nUNLINK a e c"),
    EXISTS: requests("MSET a 1 c 2\nEXISTS a c e\nTOUCH a c e"),
    "`MSETNX`": requests(MSETNX),
    "`MSETNX`, same tag": tagged(MSETNX),
    "`RENAME`": requests(RENAME),
    "`RENAME`, same tag": tagged(RENAME),
    "`COPY`": requests(COPY),
    "`COPY`, same tag": tagged(COPY),
    "`BITOP`": requests(BITOP),
    "`BITOP`, same tag": tagged(BITOP),
    "`MULTI`, `EXEC`": requests(EXEC),
    "`MULTI`, `EXEC`, same tag": tagged(EXEC),
    "`WATCH`, `MULTI`, `EXEC`, same tag": tagged(WATCH),
    "`EVAL` of one key": lambda client: [client.eval(INCREMENT, 1, "a"), client.get("a")],
    "`EVAL` of several keys": eval_both("a", "c"),
    "`EVAL` of several keys, same tag": eval_both("{t}a", "{t}c"),
    "`EVAL` without a key": lambda client: [client.eval("return 7", 0)],
    "`SCRIPT LOAD`, then `EVALSHA`": load_script,
    "`SUBSCRIBE`": requests("SUBSCRIBE channel"),
    PUBLISH: None,
    "`SCAN`": walk(lambda client: client.scan_iter()),
    "`KEYS`": walk(lambda client: client.keys("*")),
    "`DBSIZE`": walk(lambda client: [client.dbsize()]),
    "`FLUSHALL`, `FLUSHDB`": walk(emptied),
    SELECT: requests("SET a 1\nSELECT 1\nGET a"),
    "`RANGE`, `PREFIX`, `COUNTRANGE`": requests("SET a 1\nRANGE a z"),
    "`CAS`": requests("SET a 1\nCAS a 1 2\nGET a"),
    "`HELLO 3` (RESP3)": ping_with_resp3,
    "`CLIENT TRACKING`, `CLIENT ID`": requests("CLIENT TRACKING ON"),
    "`INFO`, of the whole fleet": walk(lambda client: [client.info("keyspace")["db0"]["keys"]]),
    "`SAVE`": requests("SAVE"),
}


def replies(case, port):
    """Returns the replies, or None if one of them was an error."""
    client = connect(port)
    try:
        return case(client)
    except RedisError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        return f"a reply that redis-py cannot read: {error}"
    finally:
        client.close()


def publish(fleet):
    """A subscriber of each server is to receive one message."""
    subscribers = [server.client.pubsub() for server in fleet.servers]
    client = fleet.connect()
    try:
        for subscriber in subscribers:
            subscriber.subscribe("channel")
            if subscriber.get_message(timeout=None)["type"] != "subscribe":
                raise Difference("a server did not confirm a subscription")
        return "works" if client.publish("channel", "message") == len(subscribers) else "wrong"
    except RedisError:
        return "refused"
    finally:
        for client in [client, *subscribers]:
            client.close()


def outcomes(fleet, alone):
    """Runs all cases, at the fleet and at the server `alone`, and returns each case's outcome."""
    found = {}
    for title, case in CASES.items():
        for server in [*fleet.servers, alone]:
            server.client.flushall()
        if title == PUBLISH:
            found[title] = publish(fleet)
            continue
        wanted = replies(case, alone.port)
        if wanted is None:
            raise Difference(f"one server refuses {title}")
        got = replies(case, fleet.proxy.port)
        found[title] = "refused" if got is None else "works" if got == wanted else "wrong"
    return found


def place_keys(fleet):
    """Checks that `a` and `c` are on different servers, as the cases require."""
    client = fleet.connect()
    client.mset({"a": 1, "c": 2})
    client.close()
    if fleet.owners("a") == fleet.owners("c"):
        raise Difference("the keys a and c are on the same server: other keys are needed")


def compare_with_page(kind, found):
    """Compares the outcomes with the page's table, row by row."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    head = next((row for row in rows if kind in [cell.lower() for cell in row]), None)
    if not head:
        raise Difference(f"{PAGE.name} has no table with a column for {kind}")
    column = [cell.lower() for cell in head].index(kind)
    page = {row[0]: row[column].split()[0] for row in rows if row[0] in CASES and len(row) == len(head)}
    for title, outcome in found.items():
        if page.get(title) != outcome:
            raise Difference(f"{kind}: {title} is '{page.get(title)}' on the page, and '{outcome}' here")


def check_rule(fleet, found):
    """Gives each server the page's rule; then only rows that a proxy answers itself are still wrong."""
    rule = re.search(r"^ACL SETUSER default .*$", PAGE.read_text(), re.M)[0].split()
    for server in fleet.servers:
        server.client.execute_command(*rule)
    for title in [title for title, outcome in found.items() if outcome == "wrong"]:
        got = publish(fleet) if title == PUBLISH else replies(CASES[title], fleet.proxy.port)
        if title not in ANSWERED_BY_PROXY and got not in [None, "refused"]:
            raise Difference(f"the rule does not refuse {title}: {got}")
