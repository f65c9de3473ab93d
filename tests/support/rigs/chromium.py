"""Which browser tests run."""

from pathlib import Path

_SYSTEM = Path("/usr/bin/chromium")
CHROMIUM = _SYSTEM if _SYSTEM.exists() else None
"""The system's browser, where there is one, else the one that playwright brings."""
