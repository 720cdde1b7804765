"""Quantiles of the return of each robot's episodes: a table in, a table out.

    python3 quantiles.py EPISODES.parquet QUANTILES.parquet --steps 10

It knows nothing of Provenir: `pandas.toml` beside it says what it is given and what it has to return.
"""

import argparse

import pandas

parser = argparse.ArgumentParser()
parser.add_argument("episodes")
parser.add_argument("quantiles")
parser.add_argument("--steps", type=int, required=True)
arguments = parser.parse_args()

episodes = pandas.read_parquet(arguments.episodes)
levels = [step / arguments.steps for step in range(arguments.steps + 1)]
returns = episodes.groupby("env")["return"]
table = returns.quantile(levels).rename_axis(["env", "quantile"]).reset_index()
table["episodes"] = table["env"].map(returns.size())
print(f"{len(episodes)} episodes of {returns.ngroups} robots")

table.to_parquet(arguments.quantiles, index=False)
