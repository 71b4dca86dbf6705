"""Archives for tests, made in memory."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping

_LEVEL = 1
"""Compression is not what is tested: more takes a second for an archive that is too large."""


def zip_of(files: Mapping[str, bytes]) -> bytes:
    """A zip of these files, deflated."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tar_of(files: Mapping[str, bytes], *links: tarfile.TarInfo) -> bytes:
    """A tar of these files, and of other members that have no content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for link in links:
            archive.addfile(link)
    return out.getvalue()


def tgz_of(files: Mapping[str, bytes]) -> bytes:
    """A tar.gz of these files."""
    return gzip.compress(tar_of(files), _LEVEL)


def link_to(target: str, *, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """A member that is a link."""
    member = tarfile.TarInfo("link.yaml")
    member.type = kind
    member.linkname = target
    return member


def zipped_link(target: str) -> bytes:
    """A zip with a symbolic link in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        member = zipfile.ZipInfo("link.yaml")
        member.create_system = 3
        member.external_attr = 0o120777 << 16
        archive.writestr(member, target)
    return out.getvalue()


ROOT = b"""
openapi: 3.1.0
info: {title: Zoo, version: "1"}
servers: [{url: "https://zoo.example"}]
paths:
  /animals:
    $ref: paths/animals.yaml
  /keepers:
    post:
      operationId: add_keeper
      requestBody:
        content:
          application/json:
            schema: {$ref: "schemas/keeper.json"}
      responses: {}
components:
  schemas:
    Animal: {$ref: schemas/animal.yaml}
"""
ZOO: Mapping[str, bytes] = {
    "zoo/openapi.yaml": ROOT,
    "zoo/paths/animals.yaml": b"""
get:
  operationId: list_animals
  parameters:
    - $ref: "../parameters.yaml#/limit"
  responses: {}
post:
  $ref: "./add.yaml"
""",
    "zoo/paths/add.yaml": b"""
operationId: add_animal
requestBody:
  required: true
  content:
    application/json:
      schema: {$ref: "../schemas/animal.yaml"}
responses: {}
""",
    "zoo/parameters.yaml": b"limit: {name: limit, in: query, schema: {$ref: '#/size'}}\nsize: {type: integer}\n",
    "zoo/schemas/animal.yaml": b"""
type: object
properties:
  name: {type: string}
  mother: {$ref: "#"}
  keeper: {$ref: keeper.json}
""",
    "zoo/schemas/keeper.json": b'{"type":"object","properties":{"cares_for":{"type":"array","items":'
    b'{"$ref":"../openapi.yaml#/components/schemas/Animal"}}}}',
}
"""A document of six files: a path item, an operation, a parameter and schemas of their own, with a cycle over files."""
