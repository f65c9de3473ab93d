"""When model work runs: drivers, their mailboxes and states, scheduling, admission and cost.

Start at `driver.py`: one loop of a session between a control and the frames or words that show it;
`batch.py` is who calls it. `planner.py`, `stepper.py` and `travel.py` are what a driver does, over
what it consists of (`parts.py`). `mailbox.py` merges controls, `states.py` owns cache blocks,
`lead.py` and `pace.py` hold generation back, `outlet.py` numbers and times what goes out,
`scheduler.py` picks what runs.

This room imports `models` only. It has no clock, no threads and no I/O: time and results come in,
emissions are taken.
"""

from reverie.engine.admission import Admission, CostBook
from reverie.engine.batch import run_batch
from reverie.engine.candidate import Candidate
from reverie.engine.driver import LoopDriver
from reverie.engine.options import DriverOptions
from reverie.engine.position import Position
from reverie.engine.scheduler import StepScheduler

__all__ = [
    "Admission",
    "Candidate",
    "CostBook",
    "DriverOptions",
    "LoopDriver",
    "Position",
    "StepScheduler",
    "run_batch",
]
