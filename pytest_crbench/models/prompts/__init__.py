"""Every prompt, as a jinja2 template beside this file whose first lines say what it is for."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from ...host import digest


def source(name: str) -> str:
    """Return the text of a template (without its ``.j2``).

    Raises:
        FileNotFoundError: if there is none of that name.
    """
    return (files(__name__) / f"{name}.j2").read_text(encoding="utf-8")


def render(name: str, **values: Any) -> str:
    """Render a template; a value that it names and that is not given is an error.

    Raises:
        jinja2.UndefinedError: if a value is missing.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # a prompt is not HTML; untrusted text is fenced by whoever passes it
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values).strip() + "\n"


def digest_of(*names: str) -> str:
    """Digest of templates: part of the fingerprint of whoever uses them."""
    return digest.of({name: source(name) for name in names})


def digest_of_all() -> str:
    """Digest of every template there is: part of what a run is made of."""
    names = (entry.name for entry in files(__name__).iterdir())
    return digest_of(*sorted(name.removesuffix(".j2") for name in names if name.endswith(".j2")))
