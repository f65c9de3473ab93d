"""When model work runs: drivers, their mailboxes and states, scheduling and admission.

Start at `driver.py`: one loop of a session between a control and the frames or words that show it;
`batch.py` calls it. `loop_start.py` says where a driver begins, `loop_status.py` where it is.
`planner.py`, `stepper.py` and `rollback.py` are what it does, over the context that they share
(`loop_context.py`). `mailbox.py` merges the controls that `inputs.py` lets in, `states.py`
owns cache blocks, `pacing.py` holds generation back, `emitter.py` numbers and times what goes out,
`scheduler.py` picks what runs.

This package imports `models` only. It has no clock, no threads and no I/O: time and results come
in, emissions are taken. Import from its modules: those that only describe need no torch.
"""
