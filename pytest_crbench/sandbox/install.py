"""Installing into an image: in a build container with the network, which is then committed.

Index settings reach one command's environment only, and the CA bundle is removed before the commit, in the
same layer: no image and no history holds them.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import File
from ..host import digest
from ..host.space import is_full
from ..text.printable import decode
from . import archive
from .build import PYTHON, WORKDIR, build_container
from .engine import DISK_FULL, connect, engine_errors
from .uv import build_failure, pip_environment, redact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

    from ..core.model import Tree
    from ..core.sandbox import SandboxSettings
    from .build import Execute
    from .engine import Ran

USER_LABEL = "crbench.uid"
_TAIL = 3000
_COMMIT_TIMEOUT = 600.0
_SHORT = 120.0
#: What root needs to install from, and to put back, a tree that is not its own.
_TREE_CAPABILITIES = ("DAC_OVERRIDE", "CHOWN", "FOWNER")
_PIP = (PYTHON, "-I", "-m", "pip", "install", "--no-deps")
#: Raise when the way a tree is installed changes.
EDITABLE_RECIPE = 2
#: What tools take in place of git's version: setuptools-scm and hatch-vcs, PDM, pbr, Poetry's plugin.
_VERSIONS = (
    "SETUPTOOLS_SCM_PRETEND_VERSION",
    "PDM_BUILD_SCM_VERSION",
    "PBR_VERSION",
    "POETRY_DYNAMIC_VERSIONING_BYPASS",
)
_COMPILED = (".so", ".pyd", ".dylib")


def install_pins(
    client: APIClient,
    settings: SandboxSettings,
    image: str,
    pins: tuple[str, ...],
    tag: str,
    said: dict[str, str],
) -> None:
    """Install pins on top of ``image`` and commit that as ``tag``, with the labels ``said``.

    Raises:
        InfraError: with the tail of pip's output.
    """
    listed = File("pins.txt", ("\n".join(pins) + "\n").encode())
    with build_container(client, settings, image, network=True) as execute:
        with reachable_index(client, settings, execute, listed) as (folder, env):
            done = execute([*_PIP, "-r", f"{folder}/pins.txt"], settings.build_timeout, env)
            if done.returncode != 0:
                raise _pip_failed(done, ", ".join(pins), settings)
        uid = decode(execute(["id", "-u", "user"], _SHORT).stdout).strip()
        _commit(client, execute, tag, {**said, USER_LABEL: uid})


def install_editable(
    client: APIClient, settings: SandboxSettings, image: str, tree: Tree, uid: int, version: str, tag: str
) -> None:
    """Install the tree that ``image`` holds as an editable package, and commit that as ``tag``.

    What the installation leaves in the tree is removed again: an agent's edits are told from the tree's
    files by comparing with head.

    ``version``, unless "", is what the project would have asked git for: the tree has no history.

    Raises:
        InfraError: with the end of what the build said.
        InvalidInstanceError: if it compiles modules into the tree.
    """
    with build_container(client, settings, image, network=True, capabilities=_TREE_CAPABILITIES) as execute:
        with reachable_index(client, settings, execute) as (_folder, env):
            env = env | (dict.fromkeys(_VERSIONS, version) if version else {})
            # Without it pip leaves the metadata of a project with setup.py alone in the tree, where it is
            # removed again.
            done = execute([*_PIP, "--use-pep517", "--editable", WORKDIR], settings.build_timeout, env)
            if done.returncode != 0:
                raise _pip_failed(done, "the tree (editable)", settings)
        _refuse_compiled(execute, tree)
        done = execute(["find", WORKDIR, "-mindepth", "1", "-delete"], _SHORT)
        if done.returncode != 0:
            raise InfraError(f"cannot clear the tree: {decode(done.stderr)[-_TAIL:]}", reason="install")
        files = (File(path, content, mode) for path, mode, content in digest.verified(tree))
        with engine_errors("putting the tree back"):
            client.put_archive(execute.container, "/", archive.pack(files, WORKDIR, uid, keep=[WORKDIR]))
        _commit(client, execute, tag, {})


def _refuse_compiled(execute: Execute, tree: Tree) -> None:
    known = {path for path, _mode, _content in digest.walk(tree.path)}
    seen = decode(execute(["find", WORKDIR, "-type", "f", "-printf", "%P\\n"], _SHORT).stdout).splitlines()
    made = [path for path in seen if path.endswith(_COMPILED) and path not in known]
    if made:
        raise InvalidInstanceError(
            f'environment.install = "editable" compiles modules into the tree ({", ".join(made[:5])}), '
            'which is not supported; use "none", or require a release of the package',
            reason="install",
        )


@contextmanager
def reachable_index(
    client: APIClient, settings: SandboxSettings, execute: Execute, *files: File
) -> Iterator[tuple[str, dict[str, str]]]:
    """Lend a build container a folder with ``files`` and the CA bundle; gives that and pip's variables.

    Raises:
        InfraError: if the folder cannot be removed afterwards.
    """
    folder = f"/tmp/{uuid.uuid4().hex[:12]}"
    bundle = None
    lent = list(files)
    if settings.ca_bundle is not None:
        bundle = f"{folder}/ca.pem"
        lent.append(File("ca.pem", _read_bundle(settings)))
    with engine_errors("copying files to the build container"):
        client.put_archive(execute.container, "/", archive.pack(lent, folder, 0, keep=["/tmp"]))
    yield folder, pip_environment(settings, bundle)
    if execute(["rm", "-rf", folder], _SHORT).returncode != 0:
        raise InfraError(f"cannot remove {folder} from the build container; run it again", reason="install")


def _commit(client: APIClient, execute: Execute, tag: str, said: dict[str, str]) -> None:
    # The container's own labels would be inherited: an image belongs to no session.
    marks = {**said, "crbench.session": "", "crbench.owner": ""}
    changes = [
        "LABEL " + " ".join(f'{name}="{value}"' for name, value in marks.items()),
        'CMD ["sleep", "3600"]',
    ]
    repository, _, version = tag.partition(":")
    committer = connect(_COMMIT_TIMEOUT)
    try:
        with engine_errors(f"committing {tag}"):
            committer.commit(execute.container, repository, version, changes=changes)
    finally:
        committer.close()


def _pip_failed(done: Ran, what: str, settings: SandboxSettings) -> InfraError:
    ended = (
        f"did not end within {settings.build_timeout:.0f} s"
        if done.late
        else f"exit status {done.returncode}"
    )
    said = redact(decode(done.stdout + b"\n" + done.stderr), settings).strip()[-_TAIL:]
    failed = f"pip install of {what} in an image: {ended}"
    if is_full(said):
        return InfraError(f"{failed}: {DISK_FULL}. pip said: {said}", reason="disk")
    advice = "" if done.late else build_failure(said)
    if advice:
        return InfraError(f"{failed}. {advice}", reason="install")
    # What to do comes first: results keep the beginning of a long reason.
    return InfraError(
        f"{failed}. Check the network, the index settings and the CA bundle (PIP_INDEX_URL, PIP_CERT) of "
        f"this machine. pip said: {said}",
        reason="install",
    )


def _read_bundle(settings: SandboxSettings) -> bytes:
    assert settings.ca_bundle is not None
    try:
        return settings.ca_bundle.read_bytes()
    except OSError as error:
        raise InfraError(
            f"cannot read the CA bundle {settings.ca_bundle}: {error.strerror}", reason="ca-bundle"
        ) from error
