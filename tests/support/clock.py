"""A clock that can be set while a program runs: a library that is loaded before all others.

Only the clock that tells the time of day is moved, as an administrator or a time server does it; the
monotonic one, and the times of files, go on.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE = r"""
struct timespec { long seconds, nanoseconds; };
struct timeval { long seconds, microseconds; };
void *dlsym(void *library, const char *name);
char *getenv(const char *name);
long atol(const char *text);
int open(const char *path, int flags, ...);
long read(int descriptor, void *to, unsigned long size);
int close(int descriptor);

static long jump(void) {
    char text[32];
    const char *path = getenv("CLOCK_JUMP");
    int descriptor = path ? open(path, 02000000 /* O_CLOEXEC */) : -1;
    if (descriptor < 0) return 0;
    long size = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (size <= 0) return 0;
    text[size] = 0;
    return atol(text);
}

int clock_gettime(int clock, struct timespec *now) {
    static int (*real)(int, struct timespec *);
    if (!real) real = (int (*)(int, struct timespec *)) dlsym((void *) -1L /* RTLD_NEXT */, "clock_gettime");
    int status = real(clock, now);
    if (status == 0 && (clock == 0 || clock == 5 /* REALTIME, REALTIME_COARSE */)) now->seconds += jump();
    return status;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    int status = clock_gettime(0, &found);
    now->seconds = found.seconds;
    now->microseconds = found.nanoseconds / 1000;
    return status;
}

long time(long *to) {
    struct timespec found;
    clock_gettime(0, &found);
    if (to) *to = found.seconds;
    return found.seconds;
}
"""


def settable_clock(folder: Path) -> tuple[dict[str, str], Path]:
    """Make the library; the variables that load it, and the file that holds by how many seconds it is off.

    Raises:
        RuntimeError: if there is no C compiler (the Debian package tcc is a small one).
    """
    compiler = next(filter(None, map(shutil.which, ("tcc", "cc", "gcc", "clang"))), None)
    if compiler is None:
        raise RuntimeError("no C compiler: install gcc, or tcc, which is small")
    source, library, jump = folder / "clock.c", folder / "clock.so", folder / "jump"
    source.write_text(_SOURCE)
    jump.write_text("0")
    argv = [compiler, "-shared", "-fPIC", "-w", "-o", str(library), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    return {"LD_PRELOAD": str(library), "CLOCK_JUMP": str(jump)}, jump
