"""The real documents, read and compiled once for all tests about each."""

import pytest

from tests.support.real_documents import ARCHIVE, RealDocument
from tests.support.specs import all_specs


@pytest.fixture(scope="session", params=[*all_specs(), ARCHIVE])
def real_document(request: pytest.FixtureRequest) -> RealDocument:
    """Each document once: pytest runs the tests of one together, of all modules."""
    return RealDocument(request.param)
