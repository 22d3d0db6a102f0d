"""cachelib: values stored, read, counted and expired."""

from cachelib import RedisCache
from support import PORT, expect, main, until


def scenario(_):
    cache = RedisCache("127.0.0.1", PORT, key_prefix="cache:")
    expect(cache.set_many({f"key:{number}": [number] for number in range(100)}, timeout=60) != [], True, "set_many")
    expect(cache.get_many("key:0", "none", "key:99"), [[0], None, [99]], "values")
    expect((cache.inc("count", 5), cache.dec("count", 2)), (5, 3), "a counter")
    expect((cache.add("key:0", 1), cache.add("new", 1), cache.has("new")), (False, True, True), "add")
    expect(cache.delete_many("key:0", "key:1"), ["key:0", "key:1"], "deleted keys")
    cache.set("brief", 1, timeout=1)
    until(lambda: not cache.has("brief"), "a value expires")
    expect((cache.clear(), cache.get("key:5")), (True, None), "clear")
    return "100 values, a counter; a value was gone when its time was over; all were removed"


main(__file__, scenario)
