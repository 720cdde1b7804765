#!/usr/bin/env python3
"""Checks that other programs read our Parquet files without help.

    python scripts/check_parquet.py target/tmp/sample.parquet

The file is the one that `cargo test --release -p provenir-table` leaves behind; what it must hold is written in
stages/table/tests/table/support.rs and, a second time, here. Needs pandas and pyarrow; Polars and DuckDB are checked
where they are installed.
"""

import importlib.util
import math
import sys

import pandas
import pyarrow
import pyarrow.parquet

ROWS = 1000
METADATA = {b"environment": b"hopper", b"expert": "sample \u2192 test".encode()}


def expected(row):
    """A row as plain Python values; all floats in it are exact in f32, but `return`, which is f64."""
    return {
        "sample": (1 << 40) + row,
        "episode": row // 10,
        "offset": 5 - row,
        "observation": [row + part for part in (0.0, 0.25, 0.5)],
        "reward": row * 0.5,
        "return": row / 3.0,
        "terminated": row % 10 == 9,
        "method": ("bc", "rbc", "noisy-bc")[row % 3],
        "loss": row * 0.125 if row % 4 else None,
        "note": None if row % 2 else f"r\u00f6w {row}",
        "shape": list(range(row % 4)),
        "values": [float(row)] * (row % 5) if row % 3 else None,
    }


def plain(row):
    """The row with lists for arrays and tuples, and None for pandas' NaN, which is how it reads a missing number."""
    values = {}
    for name, value in row.items():
        if hasattr(value, "tolist"):
            value = value.tolist()
        elif isinstance(value, tuple):
            value = list(value)
        values[name] = None if isinstance(value, float) and math.isnan(value) else value
    return values


def check(reader, rows):
    """Compares rows, given as dictionaries, with what must be there."""
    if len(rows) != ROWS:
        sys.exit(f"{reader} reads {len(rows)} rows, not {ROWS}")
    for index, found in enumerate(rows):
        for name, value in expected(index).items():
            if found[name] != value:
                sys.exit(f"{reader} reads {found[name]!r} in row {index} of `{name}`, not {value!r}")
        if len(found) != len(expected(index)):
            sys.exit(f"{reader} reads the columns {list(found)}")
    print(f"{reader}: {ROWS} rows as written")


def main(path):
    table = pyarrow.parquet.read_table(path)
    check("pyarrow", table.to_pylist())
    types = {field.name: str(field.type) for field in table.schema}
    wanted = {"observation": "fixed_size_list<element: float not null>[3]", "episode": "uint32"}
    if not wanted.items() <= types.items():
        sys.exit(f"pyarrow reads the types {types}")
    if table.schema.metadata != METADATA:
        sys.exit(f"pyarrow reads the metadata {table.schema.metadata}")
    content = pyarrow.parquet.read_metadata(path).metadata.get(b"provenir.content", b"")
    if len(content) != 64:
        sys.exit(f"pyarrow reads the content digest {content}")
    if table.schema.field("observation").metadata.get(b"unit") != b"m":
        sys.exit("pyarrow reads no unit of `observation`")

    check("pandas", [plain(row) for row in pandas.read_parquet(path).to_dict("records")])

    if importlib.util.find_spec("polars"):
        import polars

        check("Polars", [plain(row) for row in polars.read_parquet(path).to_dicts()])
    if importlib.util.find_spec("duckdb"):
        import duckdb

        cursor = duckdb.execute("SELECT * FROM read_parquet(?)", [path])
        names = [column[0] for column in cursor.description]
        check("DuckDB", [plain(dict(zip(names, row))) for row in cursor.fetchall()])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
