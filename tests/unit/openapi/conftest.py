"""The real documents, read and compiled once for all tests about each."""

import pytest

from tests.support.real_documents import ARCHIVE, RealDocument
from tests.support.specs import all_specs

SIMILAR = frozenset(
    {
        *("argo-workflows-v2.json", "asana.yaml", "discord-31.json", "github.json", "kubernetes-full-v2.json"),
        *("sendgrid-v2.json", "square.json", "stripe-2019.json", "twilio-api-2010.json"),
    }
)
"""Large documents that repeat the cases of others: the long run reads them."""
DOCUMENTS = [
    pytest.param(name, marks=pytest.mark.long) if name in SIMILAR else name for name in (*all_specs(), ARCHIVE)
]


@pytest.fixture(scope="session", params=DOCUMENTS)
def real_document(request: pytest.FixtureRequest) -> RealDocument:
    """Each document once: pytest runs the tests of one together, of all modules."""
    return RealDocument(request.param)
