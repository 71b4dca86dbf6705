"""Budget of one rendering: limits on steps, loop rounds, output and stored variables.

A step is about a microsecond of work. Work on a value is charged by the value's size in advance. Work is counted, not
timed, so the same template and variables give the same result on any machine.
"""

from dataclasses import dataclass

from gateway.errors import TemplateFailed

_BYTES_PER_STEP = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderingLimits:
    """Limits of one rendering: `output` in bytes, `kept` and `text` in characters, `items` per list."""

    steps: int = 100_000
    rounds: int = 10_000
    output: int = 256 * 1024
    kept: int = 1024 * 1024
    text: int = 256 * 1024
    items: int = 10_000


class RenderingBudget:
    """The remaining budget while one template, or one tree of templates, is rendered."""

    def __init__(self, limits: RenderingLimits) -> None:
        self.limits = limits
        self._steps = limits.steps
        self._rounds = limits.rounds
        self._output = limits.output

    def spend(self, steps: int = 1) -> None:
        """Charge some steps.

        Raises:
            TemplateFailed: not enough steps are left.
        """
        self._steps -= steps
        if self._steps < 0:
            raise TemplateFailed(f"the template takes more than {self.limits.steps} steps")

    def spend_on(self, size: int) -> None:
        """Charge the steps for reading or copying this many characters."""
        self.spend(1 + size // _BYTES_PER_STEP)

    def start_round(self) -> None:
        """Charge one round of a loop."""
        self._rounds -= 1
        if self._rounds < 0:
            raise TemplateFailed(f"the template's loops take more than {self.limits.rounds} rounds in all")

    def write(self, size: int) -> None:
        """Charge this many bytes of output."""
        self._output -= size
        if self._output < 0:
            raise TemplateFailed(f"the template's output is larger than {self.limits.output} bytes")

    def check_text(self, length: int) -> None:
        """Check and charge a text of this length before it is built."""
        if length > self.limits.text:
            raise TemplateFailed(f"a filter would make a text of more than {self.limits.text} characters")
        self.spend_on(length)

    def check_items(self, count: int) -> None:
        """Check and charge a list of this many items before it is built."""
        if count > self.limits.items:
            raise TemplateFailed(f"a filter would make a list of more than {self.limits.items} items")
        self.spend(1 + count // 8)

    def check_kept(self, size: int) -> None:
        """Check the total size of the assigned variables."""
        if size > self.limits.kept:
            raise TemplateFailed(f"the template's own variables hold more than {self.limits.kept} characters")
