"""`reverie eval`: what the embedded model can do, measured against the simulator's truth.

Start at `trials.py`: what sessions are put through. `worlds.py` says on which maps, `stage.py`
plays them through the serving loop (`engine/`, never a copy of it), `reading.py` says what a
picture shows, `samples.py` how sure a figure is, `bars.py` how good it has to be. No room imports
it.
"""

from reverie.evaluation.report import EvaluationReport, as_table, write_json
from reverie.evaluation.run import EvaluationOptions, run_evaluation
from reverie.evaluation.strip import draw_strip

__all__ = [
    "EvaluationOptions",
    "EvaluationReport",
    "as_table",
    "draw_strip",
    "run_evaluation",
    "write_json",
]
