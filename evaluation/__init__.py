"""`reverie eval`: the quality of the embedded model, measured against the simulator's truth.

Start at `trials.py`, which defines what is tried. `worlds.py` draws the maps, `model_rig.py` runs
sessions through the serving loop (`engine/`, never a copy of it), `reading.py` reads what a picture
shows, `samples.py` computes intervals, `bars.py` says how good a figure has to be. No package of
the runtime imports this one.
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
