"""Making archives, good and hostile, in memory."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

Entry = tuple[str, bytes] | tuple[str, bytes, dict[str, object]]


def sdist(*entries: Entry) -> bytes:
    """Make a .tar.gz; the third item of an entry sets fields of its TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content, *fields in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o644
            for key, value in (fields[0] if fields else {}).items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return out.getvalue()


def zipped(*entries: Entry) -> bytes:
    """Make a .zip; the third item of an entry may hold ``mode``."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content, *fields in entries:
            info = zipfile.ZipInfo(name)
            mode = int((fields[0] if fields else {}).get("mode", stat.S_IFREG | 0o644))
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, content)
    return out.getvalue()
