"""`reverie bench`: what the runtime costs, as ratios within one run on one machine.

Start at `measures.py`; what pictures cost on their way to a browser (`--media`) is in `latency.py`.
It drives the whole house through `Engine`, beside bare loops that know of no house at all; so it
stands beside `host.py`, and no room imports it.
"""

from reverie.bench.measures import run_bench
from reverie.bench.report import BenchReport, as_table, write_json
from reverie.bench.sizes import BenchOptions

__all__ = ["BenchOptions", "BenchReport", "as_table", "run_bench", "write_json"]
