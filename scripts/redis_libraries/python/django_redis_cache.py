"""django-redis: a session stored, read and expired; the cache's counters, locks and patterns."""

import django
from django.conf import settings
from support import URL, expect, main, until

settings.configure(
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": URL}},
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    SECRET_KEY="none",
)
django.setup()


def scenario(_):
    from django.contrib.sessions.backends.cache import SessionStore
    from django.core.cache import cache

    session = SessionStore()
    session["user"] = {"name": "ada", "roles": [1, 2]}
    session.save()
    again = SessionStore(session.session_key)
    expect(again["user"], {"name": "ada", "roles": [1, 2]}, "the session")
    again.set_expiry(1)
    again.save()
    until(lambda: not SessionStore().exists(session.session_key), "the session expires")
    expect(SessionStore(session.session_key).load(), {}, "the expired session")

    cache.set_many({f"key:{number}": number for number in range(100)}, timeout=60)
    expect(cache.get_many(["key:1", "key:99", "none"]), {"key:1": 1, "key:99": 99}, "values")
    expect((cache.incr("key:1", 41), cache.add("key:1", 0), cache.add("new", 0)), (42, False, True), "incr and add")
    expect(0 < cache.ttl("key:1") <= 60, True, "time to live")
    expect(sorted(cache.iter_keys("key:9*")), ["key:9", *(f"key:9{number}" for number in range(10))], "keys of a pattern")
    expect(cache.delete_pattern("key:*", itersize=10), 100, "deleted keys")
    with cache.lock("lock", timeout=30):
        expect(cache.lock("lock").acquire(blocking=False), False, "acquired a held lock")
    return "a session was stored, read, and gone when its time was over; 100 values, a counter, a lock, a pattern deleted"


main(__file__, scenario)
