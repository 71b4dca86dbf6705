"""A program that raises the limit of open files where less is allowed than a replica can use."""

import resource

from gateway.app.server import serve

for soft, hard in ((512, 512), (256, 512)):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    serve._allow_open_files()  # pyright: ignore[reportPrivateUsage]
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
