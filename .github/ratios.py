"""Prints the ratios of two runs of `cargo xtask bench`, as tables in Markdown.

    python3 .github/ratios.py --base base-*.txt --head head-*.txt

Each side may have several runs: the least of each number counts. Numbers that only one side has are left out.

>>> table = "text\\n| call | ns |\\n|---|---|\\n| empty | %s |\\n"
>>> print(compared([table % 2.0, table % 1.6], [table % 1.7, table % 1.8]), end="")
| call (nanoseconds) | base | head | ratio |
| --- | ---: | ---: | ---: |
| empty: ns | 1.6 | 1.7 | **1.06** |
>>> table = "| found | keys | in a library | more |\\n| --- | --- | ---: | ---: |\\n| rows | 3 | %s | 9 |\\n%s"
>>> print(compared([table % (200, "| old | 1 | 2 | 3 |")], [table % (190, "")]), end="")
| found (nanoseconds) | base | head | ratio |
| --- | ---: | ---: | ---: |
| rows, keys 3: in a library | 200 | 190 | 0.95 |
"""

import argparse
import pathlib
import re

UNITS = {
    "kernel": "microseconds",
    "tensors": "microseconds a tensor",
    "call": "nanoseconds",
    "keys": "nanoseconds",
    "found": "nanoseconds",
    "found by": "instructions",
}
# columns of numbers that say what a row is about
NAMES = {"keys", "variants"}
# columns that are calculated from others
DERIVED = {"more", "ratio"}
# ratios that the table shows in bold
NOTABLE = 1.05


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def tables(text):
    """The numbers of a run: by header of the table, then by name of the number."""
    found = {}
    header = previous = None
    for line in text.splitlines():
        if not line.startswith("|"):
            header = previous = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if all(re.fullmatch(":?-+:?", cell) for cell in cells):
            header = previous
        elif header and len(cells) == len(header):
            add(found.setdefault(tuple(header), {}), header, cells)
        previous = cells
    return found


def add(numbers, header, cells):
    """Adds the numbers of one row, each named after the row's texts and its column."""
    columns = list(zip(header, cells))
    texts = [f"{column} {cell}" if column in NAMES else cell for column, cell in columns if is_name(column, cell)]
    for column, cell in columns:
        if cell and not is_name(column, cell) and column not in DERIVED:
            of = column if number(column) is None else f"{column} {header[0]}"
            numbers[f"{', '.join(texts)}: {of}"] = cell


def is_name(column, cell):
    return bool(cell) and (column in NAMES or number(cell) is None)


def least(runs):
    """The least of each number in several runs, as it was printed."""
    result = {}
    for run in map(tables, runs):
        for header, numbers in run.items():
            known = result.setdefault(header, {})
            for name, text in numbers.items():
                known[name] = min(known.get(name, text), text, key=float)
    return result


def plain(text):
    """A text with nothing that bench-comment.yml refuses."""
    return re.sub(r"[^A-Za-z0-9 ,*:()_-]", " ", text)


def compared(base, head):
    """The tables of the ratios."""
    base, head = least(base), least(head)
    parts = []
    for header, numbers in head.items():
        rows = []
        for name, after in numbers.items():
            before = base.get(header, {}).get(name)
            # a time beyond another may be 0
            if before is None or float(before) <= 0:
                continue
            ratio = float(after) / float(before)
            shown = f"**{ratio:.2f}**" if ratio > NOTABLE else f"{ratio:.2f}"
            rows.append(f"| {plain(name)} | {before} | {after} | {shown} |\n")
        if rows:
            title = f"{header[0]} ({UNITS[header[0]]})" if header[0] in UNITS else header[0]
            parts.append(f"| {plain(title)} | base | head | ratio |\n| --- | ---: | ---: | ---: |\n" + "".join(rows))
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", nargs="+", type=pathlib.Path, required=True)
    parser.add_argument("--head", nargs="+", type=pathlib.Path, required=True)
    options = parser.parse_args()
    print(compared(*([path.read_text() for path in paths] for paths in (options.base, options.head))), end="")


if __name__ == "__main__":
    main()
