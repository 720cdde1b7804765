"""Holds the table of `pipelines/examples/pandas.toml` (profile `smoke`) against its inputs, without pandas' quantiles.

    check_examples.py HOPPER_EPISODES ANT_EPISODES TABLE
"""

import sys

import pyarrow.parquet

hopper, ant, table = (pyarrow.parquet.read_table(path) for path in sys.argv[1:])
expected = []
for env, episodes in [("ant", ant), ("hopper", hopper)]:
    returns = sorted(episodes.column("return").to_pylist())
    assert len(returns) == 3, returns
    # Of three values the least, the middle and the greatest.
    expected += [
        {"env": env, "quantile": level, "return": value, "episodes": 3}
        for level, value in zip([0.0, 0.5, 1.0], returns, strict=True)
    ]
found = table.to_pylist()
assert found == expected, f"{found} is not {expected}"
assert [str(field.type) for field in table.schema] == ["string", "double", "double", "int64"], table.schema
assert not any(field.nullable for field in table.schema), table.schema
print(f"the example's table is right: {len(found)} rows")
