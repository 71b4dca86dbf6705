"""Real documents of `shared/specs`, as the tests of the compiler use them."""

from functools import cached_property

from gateway.domain.sources import Compilation
from gateway.openapi.compiler import compile_document
from gateway.openapi.document.archive import unpack
from gateway.openapi.document.bundle import bundle
from gateway.openapi.options import ImportOptions
from tests.support.specs import load_spec, specs_dir

ARCHIVE = "digitalocean-multifile.tar.gz"
OPTIONS = ImportOptions(base_url="https://api.example.com/base", outline=True)


class RealDocument:
    """A document of `shared/specs`; of an archive, the document that its files make."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def raw(self) -> bytes:
        if self.name != ARCHIVE:
            return load_spec(self.name)
        made = bundle(unpack((specs_dir() / self.name).read_bytes()), entry=None)
        assert made.warnings == ()
        return made.document

    @cached_property
    def compilation(self) -> Compilation:
        return compile_document(self.raw, OPTIONS)
