"""How much memory it takes to read a file as a session does, in a process of its own.

The peak is that of the process's own memory (`VmHWM`): `getrusage` also counts the process that
began it.
"""

import subprocess
import sys

_PROGRAM = """
import sys
from pathlib import Path
from reverie.media import BadInputError, IntakeLimits, RawVideo, Size, VideoIntake, read_clip
from reverie.media.video.pictures import PICTURE_FILE

data, intake = Path(sys.argv[1]).read_bytes(), VideoIntake(Size(128, 128))

def peak_kib():
    told = Path("/proc/self/status").read_text()
    return int(told.partition("VmHWM:")[2].split()[0])

def picture():
    intake.take(RawVideo(data, 0, PICTURE_FILE))

def clip():
    for frame in read_clip(data):
        intake.take(RawVideo(frame, 0))

before_kib = peak_kib()
try:
    {picture_or_clip}()
    print("shown", peak_kib() - before_kib)
except BadInputError as error:
    print("refused", peak_kib() - before_kib)
"""


def peak_mib_of(kind: str, path: object) -> tuple[str, float]:
    """Take a picture or a clip in as a session does; return what became of it and the peak in MiB.

    Args:
        kind: `picture` or `clip`.
        path: of the file.
    """
    program = _PROGRAM.replace("{picture_or_clip}", kind)
    told = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    what, kib = told.stdout.split()
    return what, float(kib) / 1024
