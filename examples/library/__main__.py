"""`python -m examples.library [PORT]`: the API of the example library on loopback, until it is interrupted."""

import sys

import uvicorn

from examples.library.upstream import Library, build_upstream

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8091
    uvicorn.run(build_upstream(Library()), port=port, access_log=False, lifespan="off", log_level="warning")
