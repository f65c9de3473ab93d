"""`reverie bench --line`: pictures and keys through a bad line, next to bare loops.

Start at `measure.py`. A server and bare loops (`bare_loops.py`) run at the near end of a line, and
a browser with the page's own attachments and screens (`viewer.js`) at the far end.
"""
