"""`python deploy/install.py FILE…`: installs the packages that lock files name, then this tree, with its progress.

It runs in the environment that it fills, before anything else is there: the standard library only.
"""

import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install")
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_FOUND = re.compile(r"\s*(?:Collecting|Requirement already satisfied:) ([^\s=]+)")


def main(files: list[str]) -> int:
    """Install; print a counter on a terminal and one line elsewhere. Return pip's exit code."""
    count = len({name for file in files for name in _LOCKED.findall((_ROOT / file).read_text())})
    print(f"installing {count} packages into {Path(sys.prefix).name}", flush=True)
    locked = [word for file in files for word in ("-r", file)]
    code = _install(["--require-hashes", "--no-deps", "--only-binary", ":all:", *locked], count)
    code = (
        code or subprocess.run([*_PIP, "-qq", "--no-deps", "--no-build-isolation", "-e", "."], check=False).returncode
    )
    return code or subprocess.run([sys.executable, "-m", "compileall", "-q", "gateway"], check=False).returncode


def _install(options: list[str], count: int) -> int:
    is_terminal, done = sys.stdout.isatty(), 0
    with subprocess.Popen([*_PIP, "--progress-bar", "off", *options], stdout=subprocess.PIPE, text=True) as pip:
        for line in pip.stdout or ():
            found = _FOUND.match(line)
            if found is not None and is_terminal:
                done += 1
                print(f"\r\x1b[K{min(done, count)} of {count}  {found[1]}", end="", flush=True)
    print("\r\x1b[K" if is_terminal else "", end="", flush=True)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
