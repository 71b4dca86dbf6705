"""Cache of compiled validators for all tools of this replica: one per definition and kind of schema.

Compiling takes tens of microseconds to milliseconds, and a validator uses about 10 kB. So validators are cached by the
digest of their definition, up to a capacity. Tenants with identical definitions share a validator.
"""

import hashlib
from collections.abc import Callable

import structlog

from gateway.definitions.json_schema.limits import INLINE_BYTES
from gateway.definitions.json_schema.validator import Validator, compile_input, compile_loose_output, compile_output
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.thread_kinds import SNAPSHOT_LOADS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.json_text import decode_json
from gateway.errors import GatewayError, NotYetSupported

log = structlog.get_logger(__name__)


class Validators:
    """Compiled validators by definition; the least recently used is evicted first."""

    def __init__(self, *, capacity: int = 4096) -> None:
        self._compiled = BoundedCache[bytes, Validator](capacity)

    async def of(self, definition: bytes) -> Validator:
        """Return the validator of a definition's input schema. One above 8 KiB is compiled in a thread.

        Raises:
            NotYetSupported: this version cannot compile the stored schema.
        """
        return await self._find(definition, b"input", compile_input)

    async def of_output(self, definition: bytes, *, is_imported: bool = False) -> Validator | None:
        """Return the validator of a definition's output schema as it is listed; None without an output schema."""
        if b'"outputSchema"' not in definition or "outputSchema" not in decode_json(definition):
            return None
        if is_imported:
            return await self._find(definition, b"loose output", compile_loose_output)
        return await self._find(definition, b"output", compile_output)

    async def _find(self, definition: bytes, part: bytes, make: Callable[[bytes], Validator]) -> Validator:
        digest = hashlib.blake2b(definition, digest_size=16, person=part).digest()
        found = self._compiled.get(digest)
        if found is not None:
            self._compiled.move_to_end(digest)
            return found
        try:
            if len(definition) > INLINE_BYTES:
                made = await run_in_thread(SNAPSHOT_LOADS, digest.hex(), make, definition)
            else:
                made = make(definition)
        except GatewayError:
            raise
        except Exception as error:  # whatever a library has against a schema that it took before
            log.exception("schema_not_compiled")
            raise NotYetSupported(  # guard: schema-compiled
                "this version cannot compile the schema of this tool; register the tool or import its source again"
            ) from error
        self._compiled[digest] = made
        return made
