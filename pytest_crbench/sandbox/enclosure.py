"""Programs out of an image of the user's, each in a fresh container that holds one folder."""

from __future__ import annotations

import math
import tempfile
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.enclosure import NOT_A_FILE, Completed, Ended, Written
from ..core.errors import InfraError, UsageError
from ..core.model import File
from ..text.printable import decode, printable
from . import archive, build, transfer
from .container import MEMORY_EVENTS, memory_kills
from .engine import connect, engine_errors, has_ended, run
from .image import find_or_pull
from .program_image import ROOT, ProgramImage, inspect, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from docker import APIClient

    from ..core.sandbox import Limits, SandboxSettings
    from .engine import Ran

#: Who holds the container open: neither root nor the program's user, so that the program cannot end it.
_KEEPERS = (65534, 65533)
_OUTER = 30.0
#: How runtimes say that a program did not start; the message is all that came on stdout.
_NOT_STARTED = b"OCI runtime exec failed"


@dataclass
class DockerEnclosure:
    """Containers of one image; see `core.enclosure.Enclosure`.

    ``pinned`` is the id that the image had when the run began ("": not known yet): a name that is moved to
    another image half-way changes nothing. The engine is asked when it is first needed.
    """

    name: str
    settings: SandboxSettings
    limits: Limits
    network: bool = False
    pinned: str = ""
    root: str = ROOT
    _held: tuple[APIClient, ProgramImage] | None = field(default=None, repr=False)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The image's name and content id, and whether programs have the network.

        Raises:
            UsageError: if there is no engine, or the image cannot be had or used.
        """
        return {"name": self.name, "id": self.pinned or self._told().id, "network": self.network}

    def require(self, program: str) -> None:
        """Look for a program in the image; a run whose image is pinned has looked already.

        Raises:
            UsageError: if it is not there, or the image cannot be had or used.
        """
        if not self.pinned:
            try:
                require(self._client, self.settings, self._told(), program)
            except InfraError as error:
                raise UsageError(str(error)) from error

    def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        cwd: str,
        env: Mapping[str, str],
        timeout: float,
        output_limit: int,
        out: str | None,
    ) -> Ended:
        """Run one program in a container of its own.

        Raises:
            InfraError: if the engine fails, or somebody else ended the container.
        """
        client, image = self._ready()
        container = self._create(client, image, timeout)
        try:
            self._fill(client, container, image, folder)
            with engine_errors("starting a container"):
                client.start(container)
            home = {"HOME": image.home} if image.home is not None else {}
            ran = run(
                client,
                container,
                argv,
                deadline=timeout,
                output=output_limit,
                user=image.user,
                cwd=f"{ROOT}/{cwd}",
                env={"TMPDIR": f"{ROOT}/tmp", **home, **env},
            )
            trouble = self._trouble(client, container, ran, printable(argv[0], 80))
            written = None if out is None else _written(client, container, f"{ROOT}/{out}", output_limit)
        finally:
            build.remove(client, container, self.settings.log)
        done = Completed(
            returncode=None if ran.late else ran.returncode,
            stdout=ran.stdout,
            stderr=ran.stderr,
            timed_out=ran.late,
            truncated=ran.truncated,
            duration=ran.duration,
        )
        return Ended(done, written, trouble)

    def reap(self, session: str | None = None) -> int:
        """Remove the containers of ``session`` (None: of every owner that has ended); how many.

        Raises:
            InfraError: if the engine fails.
        """
        return build.reap(self._client, session, self.settings.log)

    @property
    def _client(self) -> APIClient:
        if self._held is not None:
            return self._held[0]
        return connect(otherwise="leave out --crbench-reviewer-image: the reviewer then runs on the host")

    def _ready(self) -> tuple[APIClient, ProgramImage]:
        if self._held is None:
            client = self._client
            found = find_or_pull(
                client,
                self.settings,
                self.pinned or self.name,
                what="reviewer's image",
                option="reviewer-image",
            )
            self._held = client, inspect(client, self.settings, self.name, found)
        return self._held

    def _told(self) -> ProgramImage:
        """What is wrong with the image is told before any work, as what is wrong with the options."""
        try:
            return self._ready()[1]
        except InfraError as error:
            raise UsageError(str(error)) from error

    def _create(self, client: APIClient, image: ProgramImage, timeout: float) -> str:
        keeper = next(uid for uid in _KEEPERS if uid != image.uid)
        with engine_errors("creating a container"):
            made = client.create_container(
                image.id,
                ["sleep", str(math.ceil(timeout + 300))],
                entrypoint=[],
                user=f"{keeper}:{keeper}",
                working_dir="/",
                hostname="sandbox",
                name=f"c{uuid.uuid4().hex[:16]}",
                labels=build.labels(self.settings),
                healthcheck={"test": ["NONE"]},
                host_config=client.create_host_config(
                    init=True,
                    cap_drop=["ALL"],
                    security_opt=["no-new-privileges"],
                    network_mode=None if self.network else "none",
                    mem_limit=self.limits.memory,
                    memswap_limit=self.limits.memory,
                    nano_cpus=int(self.limits.cpus * 1e9),
                    pids_limit=self.limits.pids,
                ),
            )
        return str(made["Id"])

    def _fill(self, client: APIClient, container: str, image: ProgramImage, folder: Path) -> None:
        (folder / "home").mkdir(exist_ok=True)
        with tempfile.TemporaryFile() as stream:
            archive.write_folder(stream, folder, ROOT, image.uid)
            stream.seek(0)
            with engine_errors("copying the repository into a container"):
                client.put_archive(container, "/", stream)
        if image.passwd is not None:
            accounts = archive.pack([File("passwd", image.passwd)], "/etc", 0, keep=["/etc"])
            with engine_errors("naming the user in a container"):
                client.put_archive(container, "/", accounts)

    def _trouble(self, client: APIClient, container: str, ran: Ran, program: str) -> str | None:
        """Tell what an exit status does not, and end the container: what is read after that stays as it is.

        Raises:
            InfraError: ``sandbox-gone`` if somebody else has ended it.
        """
        if ran.returncode in (126, 127) and ran.stdout.startswith(_NOT_STARTED):
            said = printable(decode(ran.stdout).removeprefix(_NOT_STARTED.decode()).strip(": \r\n"), 200)
            return (
                f"cannot be started in {self.name}: {said}. It does not run as root there: everybody must be "
                "able to read and execute it"
            )
        with engine_errors("looking at a container"):
            state = client.inspect_container(container)["State"]
        killed = bool(state.get("OOMKilled"))
        if state["Running"] and ran.returncode == 137:
            counted = run(client, container, ["cat", *MEMORY_EVENTS], deadline=_OUTER, output=4096)
            killed = memory_kills(counted.stdout) > 0
            if counted.returncode not in (0, 1):  # 1: only one of the files is there
                state["Running"] = not has_ended(client, container)
        if state["Running"]:
            with engine_errors("ending a container"):
                client.kill(container)
        elif not killed:
            raise InfraError(
                "the reviewer's container was ended from outside. Run it again", reason="sandbox-gone"
            )
        if not killed or ran.returncode == 0:
            return None
        return (
            f"was killed: its container may use {self.limits.memory // 1024**2} MiB of memory. Raise "
            "--crbench-limit memory"
        )


def _written(client: APIClient, container: str, path: str, limit: int) -> Written:
    found = transfer.head_of(client, container, path, limit + 1)
    if found is None:
        return Written(b"")
    data, regular = found
    return Written.within(data, limit) if regular else Written(b"", NOT_A_FILE)
