"""JSON that is stored in memory for long."""

import tracemalloc

from gateway.domain.json_access import encode_exact


def test_the_buffer_of_encoded_json_has_its_size() -> None:
    """Ours: definitions in memory take their own bytes; the encoder reserves many times as many for a long string."""
    value = {"description": "x" * 20_000}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        encoded = encode_exact(value)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(encoded) < after - before < 1.1 * len(encoded)
