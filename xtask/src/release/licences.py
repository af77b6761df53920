"""Writes the licences of all crates in a released binary: ``licences.py OUTPUT TARGET``."""

import json
import pathlib
import subprocess
import sys

BINARIES = {"tvm-ffi-codegen-c", "tvm-ffi-codegen-cli"}
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")

output, target = sys.argv[1:]
options = ["--format-version", "1", "--locked", "--filter-platform", target]
options += ["--features", "tvm-ffi-codegen-c/libwild,tvm-ffi-codegen-c/llvm22-1-loaded,tvm-ffi-codegen-cli/libwild"]
data = json.loads(subprocess.run(["cargo", "metadata", *options], check=True, capture_output=True).stdout)
packages = {package["id"]: package for package in data["packages"]}
depends = {
    node["id"]: [d["pkg"] for d in node["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
    for node in data["resolve"]["nodes"]
}

reached, todo = set(), [key for key, package in packages.items() if package["name"] in BINARIES]
while todo:
    key = todo.pop()
    if key not in reached:
        reached.add(key)
        todo += depends[key]

# Many crates have the same text.
crates_of = {}
for key in reached:
    package = packages[key]
    if package["source"] is None:
        continue  # this project's
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.name.upper().startswith(NAMES) and path.is_file())
    texts = [path.read_text(errors="replace").strip() for path in files]
    # A crate without a file states its licence in its manifest alone.
    texts = texts or ["\n".join(filter(None, [package["license"], *package["authors"], package["repository"]]))]
    for text in texts:
        crates_of.setdefault(text, set()).add(f"{package['name']} {package['version']}")

parts = [f"{', '.join(sorted(crates))}\n{'-' * 80}\n{text}" for text, crates in crates_of.items()]
head = "This file has the licences of the crates that the binary contains.\n"
line = "\n" + "=" * 80 + "\n"
pathlib.Path(output).write_text(line.join([head, *sorted(parts)]) + "\n")
print(f"{output}: {len(reached)} crates, {len(parts)} texts")
