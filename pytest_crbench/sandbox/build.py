"""Build containers and images: the mechanical half of `image`."""

from __future__ import annotations

import io
import posixpath
import tarfile
import tempfile
import time
import uuid
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..host.processes import is_gone, own_token
from ..host.space import is_full
from .engine import DISK_FULL, engine_errors, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker import APIClient

    from ..core.sandbox import SandboxSettings
    from .engine import Ran

#: On every container and image of ours.
LABEL = "crbench"
#: Where things are in every image of ours.
WORKDIR, SCRATCH, VENV = "/workspace", "/scratch", "/venv"
PYTHON = f"{VENV}/bin/python"
_TAIL = 3000
_REMOVALS = 4


def labels(settings: SandboxSettings) -> dict[str, str]:
    """Labels of every container: ours, which invocation's, and which process made it."""
    return {LABEL: "1", "crbench.session": settings.session, "crbench.owner": own_token()}


class Execute:
    """Runs commands as root in one build container."""

    def __init__(self, client: APIClient, container: str) -> None:
        self.client, self.container = client, container

    def __call__(self, argv: list[str], timeout: float, env: dict[str, str] | None = None) -> Ran:
        """Run a command; ``env`` is given to it alone and stored nowhere."""
        return run(
            self.client,
            self.container,
            argv,
            deadline=timeout,
            output=256 * 1024,
            user="0:0",
            cwd="/",
            env=env,
        )


@contextmanager
def build_container(
    client: APIClient,
    settings: SandboxSettings,
    image: str,
    *,
    network: bool,
    capabilities: tuple[str, ...] = (),
) -> Iterator[Execute]:
    """Run a build container: root with no other ``capabilities``; it ends itself when its time is up."""
    with engine_errors(f"starting a build container of {image}"):
        host = client.create_host_config(
            init=True,
            auto_remove=True,
            cap_drop=["ALL"],
            cap_add=list(capabilities),
            security_opt=["no-new-privileges"],
            network_mode=None if network else "none",
        )
        container = client.create_container(
            image,
            ["sleep", str(int(settings.build_timeout) + 300)],
            entrypoint=[],
            user="0:0",
            host_config=host,
            labels=labels(settings),
            name=f"c{uuid.uuid4().hex[:16]}",
        )["Id"]
    try:
        with engine_errors(f"starting a build container of {image}"):
            client.start(container)
        yield Execute(client, container)
    finally:
        remove(client, container, settings.log)


def remove(client: APIClient, container: str, log: Callable[[str], None]) -> None:
    """Remove a container with all that runs in it; one that is gone already is fine.

    Tries again for some seconds: a busy engine refuses to remove what it could not kill at once. A failure
    is logged, not raised: it must not hide a result, and the container ends itself.
    """
    from docker.errors import APIError, NotFound
    from requests.exceptions import RequestException

    for attempt in range(_REMOVALS):
        try:
            client.remove_container(container, force=True, v=True)
            return
        except NotFound:
            return
        except APIError as error:
            if "already in progress" in str(error.explanation):
                return
            failure = str(error)
        except (RequestException, OSError) as error:
            failure = str(error)  # an engine that does not answer in time is not asked again
            break
        time.sleep(0.5 * attempt)
    log(f"could not remove a container: {failure}; it ends itself")


def reap(client: APIClient, session: str | None, log: Callable[[str], None]) -> int:
    """Remove containers of ``session`` (None: of every owner that has ended); how many.

    Raises:
        InfraError: if the engine fails.
    """
    wanted = [f"{LABEL}=1"] + ([f"crbench.session={session}"] if session else [])
    with engine_errors("listing sandboxes"):
        found = client.containers(all=True, filters={"label": wanted})
    removed = 0
    for container in found:
        if session or is_gone((container.get("Labels") or {}).get("crbench.owner", "")):
            remove(client, container["Id"], log)
            removed += 1
    return removed


def build_image(
    client: APIClient,
    settings: SandboxSettings,
    dockerfile_template: str,
    values: dict[str, Any],
    tag: str,
    add: Callable[[tarfile.TarFile], None] = lambda _tar: None,
) -> None:
    """Build an image from a Dockerfile template; the context is the Dockerfile and what ``add`` puts in.

    Raises:
        InfraError: with the end of what the engine said.
    """
    dockerfile = template(dockerfile_template).render(label=LABEL, **values).encode()
    with tempfile.TemporaryFile() as stream:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            info = tarfile.TarInfo("Dockerfile")
            info.size = len(dockerfile)
            tar.addfile(info, io.BytesIO(dockerfile))
            add(tar)
        stream.seek(0)
        end = time.monotonic() + settings.build_timeout
        with engine_errors(f"building {tag}"):
            lines = client.build(
                fileobj=stream,
                custom_context=True,
                tag=tag,
                rm=True,
                forcerm=True,
                decode=True,
                network_mode="none",
                timeout=int(settings.build_timeout),
            )
            said: list[str] = []
            for line in lines:
                said.append(str(line.get("stream") or line.get("error") or ""))
                if "error" in line and is_full(said[-1]):
                    raise InfraError(f"building {tag}: {DISK_FULL} ({said[-1].strip()})", reason="disk")
                if "error" in line:
                    raise InfraError(
                        f"building {tag[:24]}… failed. Check the base image (--crbench-base-image). "
                        f"The engine said: {''.join(said)[-_TAIL:].strip()}",
                        reason="image",
                    )
                if time.monotonic() > end:
                    raise InfraError(
                        f"building {tag} took longer than {settings.build_timeout:.0f} s", reason="image"
                    )


def template(name: str) -> Any:
    """Return one of the package's jinja2 templates."""
    from jinja2 import Environment, StrictUndefined

    source = resources.files(__package__).joinpath(posixpath.join("templates", name)).read_text()
    return Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True).from_string(
        source
    )
