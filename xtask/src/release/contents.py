"""Prints the files of a release with their sizes, and checks what they contain: ``contents.py FILE ...``."""

import io
import pathlib
import subprocess
import sys
import tarfile
import zipfile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

LIMIT = 10 * 1024 * 1024  # of a wheel
LICENCES = {"LICENSE", "NOTICE", "THIRD-PARTY-LICENSES"}


def names(path):
    """The names of all files in a wheel or an archive."""
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).namelist()
    return tarfile.open(path).getnames()


def tags_allowed(path):
    """The report of auditwheel on a wheel for Linux: the oldest system that its library runs on."""
    command = [sys.executable, "-m", "auditwheel", "show", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_needed(path):
    """The names of the libraries that those in a wheel need."""
    needed = set()
    with zipfile.ZipFile(path) as wheel:
        for name in (name for name in wheel.namelist() if name.endswith(".so")):
            sections = ELFFile(io.BytesIO(wheel.read(name))).iter_sections()
            dynamic = [section for section in sections if isinstance(section, DynamicSection)]
            needed |= {tag.needed for section in dynamic for tag in section.iter_tags("DT_NEEDED")}
    return needed


problems = []
for path in map(pathlib.Path, sys.argv[1:]):
    size = path.stat().st_size
    print(f"{path.name:<72} {size / 1024 / 1024:7.2f} MB")
    inside = names(path)
    binary = path.suffix == ".whl" or path.name.startswith("tvm-ffi-codegen-")
    missing = (LICENCES if binary else {"LICENSE", "NOTICE"}) - {pathlib.PurePath(name).name for name in inside}
    if missing:
        problems.append(f"{path.name}: no {', '.join(sorted(missing))}")
    if path.suffix != ".whl":
        continue
    if size > LIMIT:
        problems.append(f"{path.name}: larger than {LIMIT} bytes")
    platform = path.stem.split("-")[-1]
    if "musllinux" in platform:
        # musl's loader is libc.so itself. auditwheel accepts Alpine's name for it alone.
        if (needed := libraries_needed(path)) != {"libc.so"}:
            problems.append(f"{path.name}: needs {', '.join(sorted(needed))}")
    elif "linux" in platform and platform.split(".")[0] not in (shown := tags_allowed(path)):
        problems.append(f"{path.name}: auditwheel says\n{shown}")
if problems:
    sys.exit("\n".join(problems))
