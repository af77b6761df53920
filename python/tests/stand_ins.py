"""Makes stand-ins for CUDA's libraries, so PyTorch from PyPI can be imported on Linux. The real libraries would be a
further download, next to the 1.2 GB of PyTorch.

    python stand_ins.py SITE

``SITE`` is the directory with the packages ``torch`` and ``nvidia-cuda-runtime``. CUDA's runtime finds no device there,
so nothing calls the stand-ins; each of their functions returns an error. They are where PyTorch looks for the libraries
of NVIDIA's packages, and are only for tests on the CPU.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path


class Needs:
    """The other libraries, and the functions in them, that libraries need."""

    def __init__(self, libraries: list[Path]) -> None:
        self.libraries: set[str] = set()
        #: The functions by their version, or by an empty string if they have no version.
        self.functions: defaultdict[str, set[str]] = defaultdict(set)
        #: The versions that each library has to define.
        self.versions: defaultdict[str, set[str]] = defaultdict(set)
        defined: set[str] = set()
        for library in libraries:
            self._read(library, defined)
        for functions in self.functions.values():
            functions -= defined

    def _read(self, library: Path, defined: set[str]) -> None:
        file = ""
        output = subprocess.run(
            ["readelf", "-W", "-d", "-V", "--dyn-syms", library], capture_output=True, text=True, check=True
        )
        for line in output.stdout.splitlines():
            fields = line.split()
            if needed := re.search(r"\(NEEDED\).*\[(.*)\]", line):
                self.libraries.add(needed[1])
            elif versions_of := re.search(r"Version: 1\s+File: (\S+)", line):
                file = versions_of[1]
            elif version := re.search(r"Name: (\S+)\s+Flags: \S+\s+Version: \d+$", line):
                self.versions[file].add(version[1])
            elif len(fields) >= 8 and fields[0].endswith(":") and fields[4] in ("GLOBAL", "WEAK"):
                name, _, symbol_version = fields[7].partition("@")
                if fields[6] != "UND":
                    defined.add(name)
                else:
                    self.functions[symbol_version].add(name)


def main(site: Path) -> None:
    folder = site / "nvidia/cu13/lib"
    done = folder / "STAND_INS"
    if done.exists():
        return
    libraries = sorted((site / "torch/lib").glob("*.so*"))
    needs = Needs(libraries)
    there = {path.name for path in [*libraries, *folder.iterdir()]}
    missing = sorted(name for name in needs.libraries - there if re.match(r"lib(cu|nv|nccl)", name))
    # functions without a version may be in any library
    anywhere = {name for name in needs.functions[""] if re.match(r"cu[A-Zbdfps]|nccl|nv", name)}
    for name in missing:
        functions = {version: needs.functions[version] for version in needs.versions[name]}
        with tempfile.TemporaryDirectory() as work:
            source, script = Path(work) / "stand_in.c", Path(work) / "stand_in.map"
            names = sorted(set().union(*functions.values(), anywhere if name.startswith("libnccl") else ()))
            source.write_text("".join(f"int {function}(void) {{ return 999; }}\n" for function in names))
            nodes = [f"{version} {{ global: {'; '.join(sorted(of))}; }};\n" for version, of in functions.items() if of]
            script.write_text("".join(nodes))
            options = [f"-Wl,--version-script={script}"] if nodes else []
            flags = ["-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{name}"]
            subprocess.run(["cc", *flags, *options, source, "-o", folder / name], check=True)
    done.write_text("\n".join(missing))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
