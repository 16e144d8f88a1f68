"""Wheels of small packages, made in memory."""

from __future__ import annotations

import os

from .archives import zipped


def wheel(project: str, version: str = "1.0", size: int = 0) -> tuple[str, bytes]:
    """Return file name and content of a pure wheel with one module; ``size`` bytes of it do not compress."""
    module = project.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    contents = {
        f"{module}.py": b"VALUE = 1\n",
        f"{module}.bin": os.urandom(size),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*contents, f"{info}/RECORD"]).encode()
    return f"{module}-{version}-py3-none-any.whl", zipped(*contents.items())
