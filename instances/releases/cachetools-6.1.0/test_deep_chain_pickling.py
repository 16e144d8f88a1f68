import copy
import pickle

import cachetools


def test_cache_with_many_use_counts_can_be_copied():
    cache = cachetools.LFUCache(maxsize=700)
    for i in range(700):
        cache[i] = i
        for _ in range(i):
            cache[i]
    assert dict(pickle.loads(pickle.dumps(cache))) == dict(cache)
    assert len(copy.deepcopy(cache)) == 700
