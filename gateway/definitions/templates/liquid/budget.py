"""How much one rendering may do: steps, loop rounds, output and what it keeps, counted and never timed.

A step is about a microsecond of work. Everything whose cost depends on a value pays for that value's size before it
does the work, so no input makes one step long. The same template and variables always come to the same end.
"""

from dataclasses import dataclass

from gateway.errors import TemplateFailed

_BYTES_PER_STEP = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderingLimits:
    """What one rendering may use."""

    steps: int = 100_000
    rounds: int = 10_000
    output: int = 256 * 1024
    kept: int = 1024 * 1024
    text: int = 256 * 1024
    items: int = 10_000


class RenderingBudget:
    """What is left of the limits while one template, or one tree of them, is rendered."""

    def __init__(self, limits: RenderingLimits) -> None:
        self.limits = limits
        self._steps = limits.steps
        self._rounds = limits.rounds
        self._output = limits.output

    def spend(self, steps: int = 1) -> None:
        """Pay for some work.

        Raises:
            TemplateFailed: there is not that much left.
        """
        self._steps -= steps
        if self._steps < 0:
            raise TemplateFailed(f"the template takes more than {self.limits.steps} steps")

    def spend_on(self, size: int) -> None:
        """Pay for reading or copying so many characters."""
        self.spend(1 + size // _BYTES_PER_STEP)

    def start_round(self) -> None:
        """Pay for one round of a loop."""
        self._rounds -= 1
        if self._rounds < 0:
            raise TemplateFailed(f"the template's loops take more than {self.limits.rounds} rounds in all")

    def write(self, size: int) -> None:
        """Pay for so many bytes of output."""
        self._output -= size
        if self._output < 0:
            raise TemplateFailed(f"the template's output is larger than {self.limits.output} bytes")

    def check_text(self, length: int) -> None:
        """Refuse to build a text of this length, before it is built."""
        if length > self.limits.text:
            raise TemplateFailed(f"a filter would make a text of more than {self.limits.text} characters")
        self.spend_on(length)

    def check_items(self, count: int) -> None:
        """Refuse to build a list of this many items, before it is built."""
        if count > self.limits.items:
            raise TemplateFailed(f"a filter would make a list of more than {self.limits.items} items")
        self.spend(1 + count // 8)

    def check_kept(self, size: int) -> None:
        """Refuse to keep this much in assigned variables at a time."""
        if size > self.limits.kept:
            raise TemplateFailed(f"the template's own variables hold more than {self.limits.kept} characters")
