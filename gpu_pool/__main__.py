"""A worker process, started by `process.ProcessHost` and by nobody else."""

import sys

from reverie.gpu_pool.process import run_child

if __name__ == "__main__":
    run_child(sys.argv[1:])
