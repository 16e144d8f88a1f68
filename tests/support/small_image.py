"""A base image of a tenth of the size, made of the ordinary one: quick to copy to engines of a test's own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from filelock import FileLock

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")
SMALL_IMAGE = "crbench-test-small:1"
_PROGRAMS = "cat chmod dd env find id ls mkdir python3 rm sh sleep timeout touch true"
#: Copies programs with the libraries that they and Python's own modules load, and Python's library.
_COLLECT = f"""\
set -e
mkdir /small
lib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
for program in {_PROGRAMS}; do
    for folder in /usr/local/bin /usr/bin /bin; do
        test ! -x $folder/$program || {{ echo $folder/$program; break; }}
    done
done > /list
readlink -f "$(command -v python3)" "$(command -v sh)" >> /list
find "$lib" -name '*.so' > /modules
{{ ldd $(cat /list /modules) 2>/dev/null || true; }} |
    grep -v ':$' | grep -o '/[^ ]*' | sort -u > /libraries
for file in $(cat /list /libraries); do
    # Merged folders (/bin, /lib) are links: name what lies behind them.
    target=$(readlink -f "$(dirname "$file")")/$(basename "$file")
    mkdir -p "/small$(dirname "$target")" && cp -a "$target" "/small$target"
    real=$(readlink -f "$file") && mkdir -p "/small$(dirname "$real")" && cp -a "$real" "/small$real"
done
cp -a --parents "$lib" /etc/passwd /etc/group /etc/ssl /small
for wheels in /usr/share/python-wheels; do test ! -d $wheels || cp -a --parents $wheels /small; done
for link in /bin /sbin /lib /lib64; do test ! -L $link || cp -a $link /small; done
mkdir -p /small/tmp /small/root && chmod 1777 /small/tmp
find /small -depth '(' -name __pycache__ -o -name test -o -name idlelib ')' -exec rm -rf {{}} +
tar -C /small -cf - .
"""


def small_image() -> str:
    """Return the small image's name; made in the shared engine if it is not there yet.

    By one process only: a second image of that name would have another id, and environments of its own.
    """
    with FileLock(Path(tempfile.gettempdir()) / f"{SMALL_IMAGE.replace(':', '-')}.lock"):
        return _made()


def _made() -> str:
    there = subprocess.run(["docker", "image", "inspect", SMALL_IMAGE], check=False, capture_output=True)
    if there.returncode == 0:
        return SMALL_IMAGE
    collect = ["docker", "run", "--rm", "--network=none", BASE_IMAGE, "sh", "-c", _COLLECT]
    keep = ["docker", "import", "-c", "ENV PATH=/usr/local/bin:/usr/bin:/bin", "-", SMALL_IMAGE]
    with subprocess.Popen(collect, stdout=subprocess.PIPE) as collected:
        subprocess.run(keep, stdin=collected.stdout, check=True, capture_output=True)
    if collected.returncode != 0:
        subprocess.run(["docker", "rmi", SMALL_IMAGE], check=False, capture_output=True)
        raise RuntimeError(f"cannot collect {SMALL_IMAGE} from {BASE_IMAGE}")
    return SMALL_IMAGE
