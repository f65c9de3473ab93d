"""`reverie bench`: what the runtime costs, as ratios within one run on one machine.

Start at `measures.py`; the path of pictures to a browser (`--media`) is in `latency.py`. The bench
drives the whole server through `Engine`, and bare loops for comparison. It is at the level of
`host.py`: no package of the runtime imports it.
"""

from reverie.bench.measures import run_bench
from reverie.bench.report import BenchReport, as_table, write_json
from reverie.bench.sizes import BenchOptions

__all__ = ["BenchOptions", "BenchReport", "as_table", "run_bench", "write_json"]
