"""Django's own tests of caches, for `hikv.django.Cache`. `scripts/python-check` copies this file among them, as `cache/hikv_tests.py`."""

import tempfile

from cache.tests import BaseCacheTests, caches_setting_for_tests
from django.core.cache import cache
from django.test import TestCase, override_settings

PLACE = tempfile.mkdtemp()


@override_settings(
    CACHES=caches_setting_for_tests(
        BACKEND="hikv.django.Cache",
        LOCATION=PLACE + "/store",
        # It never removes entries that have not expired.
        exclude={"cull", "zero_cull"},
    )
)
class HikvCacheTests(BaseCacheTests, TestCase):
    def test_incr_keeps_the_expiry(self):
        cache.set("count", 1, 1000)
        self.assertEqual(cache.incr("count", 4), 5)
        self.assertLess(cache._store.ttl(b":1:count"), 1001)
