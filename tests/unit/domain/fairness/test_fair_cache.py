"""Fair caches: least recently used first, and no tenant evicts the others."""

from random import Random

from gateway.domain.fairness.fair_cache import FairCache


def test_a_tenant_with_many_entries_evicts_its_own() -> None:
    """ISO-3: 10,000 entries of one tenant leave another tenant's single, oldest entry in place."""
    cache = FairCache[str, int](40)
    cache.put("victim", "only", 1)
    for number in range(10_000):
        cache.put("evil", str(number), number)

    assert cache.get("victim", "only") == 1
    assert (cache.used_by("evil"), len(cache)) == (10, 11)
    assert cache.get("evil", "9999") == 9999
    assert cache.get("evil", "9989") is None


def test_the_least_recently_used_entry_goes_first() -> None:
    """Ours: a read counts as a use, inside a tenant and over all."""
    cache = FairCache[str, int](8)
    for tenant in "abcd":
        cache.put(tenant, "1", 1)
        cache.put(tenant, "2", 2)
    assert cache.get("a", "1") == 1
    cache.put("a", "3", 3)
    cache.put("e", "1", 1)

    assert cache.get("a", "2") is None
    assert cache.get("a", "1") == 1
    assert cache.get("b", "1") is None


def test_weights_are_bounded_and_the_newest_entry_stays() -> None:
    """Ours: one entry above the share is kept alone."""
    cache = FairCache[str, str](100)
    cache.put("a", "small", "x", 20)
    cache.put("a", "large", "y", 90)

    assert (cache.get("a", "small"), cache.get("a", "large"), cache.used) == (None, "y", 90)
    cache.put("b", "other", "z", 20)
    assert (cache.get("a", "large"), cache.used) == (None, 20)


def test_any_mix_of_changes_keeps_the_sums() -> None:
    """Ours: the used size is the weight of the kept entries."""
    random, cache = Random(5), FairCache[int, int](64)
    for _ in range(5000):
        tenant, key = random.choice("abcdef"), random.randrange(30)
        match random.randrange(10):
            case 0:
                cache.drop(tenant, key)
            case 1:
                cache.drop_tenant(tenant)
            case _:
                cache.put(tenant, key, key, random.randrange(1, 6))
        assert cache.used == sum(cache.used_by(one) for one in "abcdef") <= 64
    cache.clear()
    assert (len(cache), cache.used, cache.used_by("a")) == (0, 0, 0)
