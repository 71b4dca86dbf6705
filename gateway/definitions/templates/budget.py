"""Budget of one rendering: limits on steps, strings and output.

Templates have no loops, so the number of operations is at most the template's length. The budget limits what they do
to large values: a step is about a microsecond of work, charged by the value's size before the work is done. Work is
counted, not timed, so the same template and variables give the same result on any machine.
"""

from gateway.definitions.templates.limits import MAX_RENDERED_TEXT_LENGTH
from gateway.errors import TemplateFailed

_STEPS = 100_000
_OUTPUT = 256 * 1024
_CHARACTERS_PER_STEP = 1024


class RenderingBudget:
    """The remaining budget while one template, or one tree of templates, is rendered; `output` is in bytes."""

    def __init__(self, *, output: int = _OUTPUT, steps: int = _STEPS) -> None:
        self.max_output = self._output = output
        self._max_steps = self._steps = steps

    def spend(self, steps: int = 1) -> None:
        """Charge some steps.

        Raises:
            TemplateFailed: not enough steps are left.
        """
        self._steps -= steps
        if self._steps < 0:  # guard: template-steps
            raise TemplateFailed(f"the template takes more than {self._max_steps} steps")

    def spend_on(self, size: int, cost: int = 1) -> None:
        """Charge the steps for reading or copying this many characters; `cost` is in steps per 1,024 of them."""
        self.spend(1 + size * cost // _CHARACTERS_PER_STEP)

    def write(self, size: int) -> None:
        """Charge this many bytes of output."""
        self._output -= size
        if self._output < 0:
            raise TemplateFailed(f"the template's output is larger than {self.max_output} bytes")

    def check_text(self, length: int) -> None:
        """Check the length of a string, and charge it, before it is built."""
        if length > MAX_RENDERED_TEXT_LENGTH:  # guard: template-texts
            raise TemplateFailed(f"the result of a filter has more than {MAX_RENDERED_TEXT_LENGTH} characters")
        self.spend_on(length)
