"""Programs that tests fetch: installed packages of a machine do not change the downloaded ones."""

from tests.deploy.programs import without_others

_STATUS = """Package: libc6
Status: install ok installed
Depends: libgcc-s1
Version: 2.36

Package: chromium-common
Status: install ok installed
Version: 150

Package: libgcc-s1
Pre-Depends: gcc-12-base
Version: 12
"""


def test_an_installed_package_counts_as_missing_but_for_the_c_library() -> None:
    """Ours: a browser that is installed in part is fetched whole (a fixed bug: it ended at once, without its files)."""
    found = without_others(_STATUS, ["libc6", "libgcc-s1"])

    assert [line for line in found.splitlines() if line.startswith("Package")] == [
        "Package: libc6",
        "Package: libgcc-s1",
    ]
    assert "Depends" not in found
    assert found.count("\n\n") == 2
