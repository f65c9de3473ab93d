"""`reverie serve` as a process of its own, which a test can kill and start again, on one port."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import yaml

START_LIMIT_S = 180
STOP_LIMIT_S = 20


class ServerProcess:
    """A server on loopback.

    Args:
        folder: for the deployment and the log.
        deployment: as in `deployment.yaml`; the port is chosen here.
    """

    def __init__(self, folder: Path, deployment: dict[str, object]) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._config = folder / "deployment.yaml"
        server = deployment.get("server", {})
        assert isinstance(server, dict)
        settings = {**deployment, "server": {**server, "port": self.port}}
        self._config.write_text(yaml.safe_dump(settings))
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready.

        Raises:
            AssertionError: it has ended, or took too long; with its log.
        """
        self.begin("readyz")

    def begin(self, route: str = "healthz") -> None:
        """Start it, and wait until `route` answers with success: by default, before models load.

        Raises:
            AssertionError: it has ended, or took too long; with its log.
        """
        command = [sys.executable, "-m", "reverie", "serve", "--config", str(self._config)]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + START_LIMIT_S
        while not self._answers(route):
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < until, self._log.read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        """End it without any warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(STOP_LIMIT_S)
            self._process = None

    def _answers(self, route: str) -> bool:
        try:
            return httpx.get(f"{self.url}{route}", timeout=2).status_code == 200
        except httpx.TransportError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
