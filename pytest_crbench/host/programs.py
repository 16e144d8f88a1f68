"""Command templates of the user's, and the surroundings in which their programs run on the host.

A template is split once like a shell would, its placeholders are filled word by word, and no shell runs it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UsageError
from ..text.printable import printable
from ..text.secrets import is_credential
from . import digest, trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Passed through always: where programs, the home folder, language, proxies and certificates are.
ORDINARY = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ"),
    *("VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("GIT_SSL_CAINFO", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
#: The placeholder of the changed files; ``{files:*.py,*.pyi}`` takes those whose names match.
FILES = "files"
#: Placeholders that a program's own name may hold: the folder of the invocation, and our interpreter.
_OWN = ("cwd", "python")


@dataclass(frozen=True)
class Template:
    """A command line as its user wrote it, and its words, of which the first is the program's path."""

    text: str
    words: tuple[str, ...]
    cwd: Path

    def uses(self, name: str) -> bool:
        """Whether a placeholder occurs."""
        return any(name == found for word in self.words for _, found, _, _ in Formatter().parse(word))

    def fill(self, values: Mapping[str, str], files: Sequence[str] = ()) -> list[str]:
        """Return the command; a value is never split, expanded or looked at for placeholders itself.

        A word that is ``{files}`` alone becomes one argument for each of ``files``; within a word, they are
        quoted for a shell.
        """
        known = {**values, "cwd": str(self.cwd), "python": sys.executable}
        filled: list[str] = []
        for word in self.words:
            (literal, name, spec, _), *more = [*Formatter().parse(word)] or [("", None, "", None)]
            if name == FILES and not (literal or more):
                filled += _matching(files, spec)
            else:
                filled.append(fill(word, known, files))
        return filled

    def files(self, files: Sequence[str]) -> bool:
        """Whether every ``{files}`` of the template, if there is one, names at least one of ``files``."""
        parsed = [part for word in self.words for part in Formatter().parse(word)]
        return all(_matching(files, spec) for _, name, spec, _ in parsed if name == FILES)


def template(text: str, known: Sequence[str], *, what: str, cwd: Path, here: bool = True) -> Template:
    """Read a command template and look its program up, so that a misspelt one is found before any work.

    Args:
        text: the command line; ``{{`` and ``}}`` stand for braces themselves.
        known: placeholders that it may hold, beside ``{cwd}`` and ``{python}``.
        what: the option, for messages.
        cwd: the folder that a relative path of the program is relative to.
        here: whether the program is one of this machine. If not, it is not looked up, and ``{cwd}`` and
            ``{python}`` name nothing.

    Raises:
        UsageError: quotes or braces that do not match, an unknown placeholder, no program, or one that is
            neither in PATH nor beside our interpreter.
    """
    if "\0" in text:
        raise UsageError(f"{what}: no command line can hold a NUL, as {printable(text)!r} does.")
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{what}: {error} in {printable(text)!r}. Quote it as for a POSIX shell.") from None
    if not words or not words[0]:
        raise UsageError(f"{what}: there is no program in {printable(text)!r}. Write cmd:PROGRAM ARGUMENTS.")
    own = _OWN if here else ()
    for word in words:
        check(word, (*known, *own), what)
    if others := check(words[0], (*known, *own), what) - set(own):
        raise UsageError(
            f"{what}: there is no placeholder {{{min(others)}}} for the program {printable(words[0])!r}; it "
            f"can only hold {' and '.join('{' + name + '}' for name in own) or 'plain text'}."
        )
    if not here:
        return Template(text, words, cwd)
    program = _find(words[0], what, cwd)
    return Template(text, (program.replace("{", "{{").replace("}", "}}"), *words[1:]), cwd)


def check(word: str, known: Sequence[str], what: str) -> frozenset[str]:
    """Return the placeholders in one word of the option ``what``.

    Raises:
        UsageError: if one is not known, or braces do not match.
    """
    hint = "write {{ and }} for braces themselves"
    try:
        found = [(name, spec, conversion) for _, name, spec, conversion in Formatter().parse(word)]
    except ValueError as error:
        raise UsageError(f"{what}: {error} in {printable(word)!r}; {hint}.") from None
    for name, spec, conversion in found:
        if name is not None and (name not in known or (spec and name != FILES) or conversion):
            raise UsageError(
                f"{what}: there is no placeholder {{{printable(name, 60)}}} in {printable(word)!r}. Known "
                f"are {', '.join('{' + k + '}' for k in known)}; {hint}."
            )
    return frozenset(name for name, _, _ in found if name is not None)


def fill(word: str, values: Mapping[str, str], files: Sequence[str] = ()) -> str:
    """Fill a word that `check` has passed; a value is never looked at for placeholders itself."""
    filled = ""
    for literal, name, spec, _ in Formatter().parse(word):
        value = shlex.join(_matching(files, spec)) if name == FILES else "" if name is None else values[name]
        filled += literal + value
    return filled


def _matching(files: Sequence[str], patterns: str | None) -> list[str]:
    """The files whose names match one of the patterns (``*.py,*.pyi``); none of them reads as an option."""
    wanted = (patterns or "*").split(",")
    found = [f for f in files if any(fnmatchcase(f.rpartition("/")[2], pattern) for pattern in wanted)]
    return [f"./{file}" if file.startswith("-") else file for file in found]


def advice_on_length(said: str) -> str:
    """Return what to do where the system refused a command line; "" if it did not."""
    if "Argument list too long" not in said:
        return ""
    return (
        " One argument can hold 128 KiB: hand over a file instead of its content ({prompt} and {diff} name "
        "files: `tool < {prompt}`), and long lists of files word by word ({files} as a word of its own)."
    )


def variables(given: Sequence[str]) -> dict[str, str]:
    """Return what a user gives a program: ``NAME`` hands this process's value on, ``NAME=VALUE`` sets one."""
    handed = {name: os.environ[name] for name in given if "=" not in name and name in os.environ}
    return {**handed, **_set(given)}


def variables_fingerprint(given: Sequence[str]) -> dict[str, Any]:
    """Return what `variables` come to, as plain JSON: ``settings`` by value, ``environment`` by digest.

    The value of a credential does not count: it says who pays, not what answers, and CI makes a new one for
    each job. None: there is no such variable.
    """
    handed: dict[str, str | None] = {}
    for name in sorted(name for name in given if "=" not in name):
        value = os.environ.get(name)
        counts = value is not None and not is_credential(name)
        handed[name] = digest.of([name, value])[:16] if counts else value and "credential"
    return {"environment": handed, "settings": dict(sorted(_set(given).items()))}


def _set(given: Sequence[str]) -> dict[str, str]:
    return {name: value for name, found, value in (item.partition("=") for item in given) if found}


def environment(given: Sequence[str], temporary: Path) -> dict[str, str]:
    """Return a program's whole environment: `ORDINARY`, the `variables` ``given``, a private TMPDIR.

    The folder of our own interpreter comes last in PATH: tools installed beside the plugin are found.
    """
    kept = {**variables(ORDINARY), **variables(given)}
    return {**kept, "PATH": search_path(kept.get("PATH", os.defpath)), "TMPDIR": str(trees)}


def search_path(path: str | None = None) -> str:
    """Return PATH (default: this process's) with the folder of our own interpreter at its end."""
    beside = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", os.defpath) if path is None else path
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join([*parts, *([] if beside in parts else [beside])])


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a new folder (with ``tmp`` in it) whose name means nothing; remove it with all that is left there.

    Raises:
        InfraError: if it cannot be made.
    """
    with trees.temporary_folder() as folder:
        with filling(folder):
            (folder / "tmp").mkdir()
        yield folder


@contextmanager
def filling(folder: Path) -> Iterator[None]:
    """Turn what the system says while a private folder is filled into an error that says what to do.

    Raises:
        InfraError: ``disk``.
    """
    try:
        yield
    except OSError as error:
        raise InfraError(
            f"cannot write to {folder}: {error.strerror}. Free some space, or set TMPDIR to a folder that "
            "has some.",
            reason="disk",
        ) from error


def _find(word: str, what: str, cwd: Path) -> str:
    name = fill(word, {"cwd": str(cwd), "python": sys.executable})
    place = str(cwd / name) if "/" in name else name
    found = shutil.which(place, path=search_path())
    if found is None:
        where = (
            f"at {printable(place)}"
            if "/" in place
            else "in PATH and beside the interpreter that runs pytest"
        )
        raise UsageError(
            f"{what}: there is no program {printable(name)!r} (looked {where}). Install it, or give its "
            "path; {cwd} stands for the folder that pytest is started in."
        )
    return str(Path(cwd, found))
