"""Starts a command in namespaces of its own, with a file system that holds only what it is given.

Standard library only, run by its path. The first argument is JSON: what to show, what may be written, limits,
and the command. Three processes: this one waits outside; the first process in the new pid namespace waits
inside, and with it all others die; the third is the command. No network, no capabilities, no other process.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from types import FrameType
from typing import Any

# Source: linux/sched.h, linux/mount.h, linux/prctl.h.
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWUTS = 0x20000000, 0x40000000, 0x04000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
INSIDE_ID = 1000  # of the user and group inside: not root, so that nothing is left of its rights
NOT_ISOLATED = 97  # exit code: the namespaces cannot be made
_NUMBERS = 100  # more than processes are started in a namespace of their own
DEVICES = ("null", "zero", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    text = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _call("mount", text[0], text[1], text[2], ctypes.c_ulong(flags), text[3])


def enter_namespaces() -> None:
    """Leave all that other processes share, as a user without rights outside."""
    user, group = os.geteuid(), os.getegid()
    kinds = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    _call("unshare", kinds)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_ID} {user} 1"),
        ("gid_map", f"{INSIDE_ID} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def show_files(
    root: str,
    readable: list[str],
    writable: dict[str, str],
    temporary_bytes: int,
    devices: list[str],
    proc: bool,
    program: str,
) -> None:
    """Make a root of nothing but these: `readable` at their own paths, `writable` by the path inside.

    root: an empty folder, on which it is mounted; no other process sees that. proc: with /proc, where that is
    allowed; program: what /proc/self/exe names without.
    """
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    os.makedirs(f"{root}/tmp", exist_ok=True)
    _mount("tmpfs", f"{root}/tmp", "tmpfs", MS_NOSUID | MS_NODEV, f"size={temporary_bytes},mode=777")
    for path in readable:
        if os.path.islink(path):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            if not os.path.lexists(root + path):
                os.symlink(os.readlink(path), root + path)
            continue
        _bind(path, root + path, MS_RDONLY)
    for name in DEVICES:
        _bind(f"/dev/{name}", f"{root}/dev/{name}", 0, devices=True)
    for path in devices:
        _bind(path, root + path, 0, devices=True)
    os.makedirs(f"{root}/proc")
    if not (proc and _mount_proc(f"{root}/proc")):
        # The disassembler asks /proc/<its number>/exe where it is itself, and dies without an answer.
        os.makedirs(f"{root}/proc/self")
        os.symlink(program, f"{root}/proc/self/exe")
        for number in range(1, _NUMBERS):
            os.symlink("self", f"{root}/proc/{number}")
    for inside, outside in writable.items():
        _bind(outside, root + inside, 0)
    old = f"{root}/.old"
    os.mkdir(old)
    os.chdir(root)
    number = SYS_PIVOT_ROOT[os.uname().machine]
    if _libc.syscall(number, os.fsencode(root), os.fsencode(old)) != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    os.chdir("/")
    _call("umount2", b"/.old", MNT_DETACH)
    os.rmdir("/.old")
    _mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def _mount_proc(place: str) -> bool:
    """Whether there is one now: in a container whose own /proc is masked the kernel allows none."""
    try:
        _mount("proc", place, "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except PermissionError:
        return False
    return True


def _bind(source: str, target: str, flags: int, devices: bool = False) -> None:
    if not os.path.exists(source):
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "a"):
            pass
    _mount(source, target, None, MS_BIND)
    # A user namespace may not take away what the mount outside forbids already: those flags stay.
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    strict = 0 if devices else MS_NOSUID | MS_NODEV
    _mount("none", target, None, MS_BIND | MS_REMOUNT | kept | strict | flags)


def limit(limits: dict[str, int]) -> None:
    """Set the limits by the names of the module `resource`."""
    for name, value in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (allowed, allowed))


def _same_end(status: int) -> None:
    """End as a child did: with its exit code, or by its signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # the first process of a namespace does not die of a signal that it sends
    os._exit(os.WEXITSTATUS(status))


def _die_with_parent() -> None:
    _call("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)


def _wait_for(child: int) -> int:
    """The status of a child; others that end meanwhile are taken away. SIGUSR1 is passed on."""

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGUSR1, forward)
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def main() -> None:
    """Isolate, limit, run."""
    job = json.loads(sys.argv[1])
    _die_with_parent()
    try:
        enter_namespaces()
        first = os.fork()
        if first:
            status = _wait_for(first)
            # What killed the command is its exit code from 128 on: see _same_end.
            code = os.waitstatus_to_exitcode(status)
            if code > 128 and code - 128 in signal.valid_signals():
                status = code - 128  # as wait() gives a death by this signal
            _same_end(status)
        _die_with_parent()
        show_files(
            job["root"],
            job["readable"],
            job["writable"],
            job["temporary_bytes"],
            job["devices"],
            job["proc"],
            job["program"],
        )
    except OSError as error:
        os.write(2, f"cannot isolate: {error}\n".encode())
        os._exit(NOT_ISOLATED)
    command = os.fork()
    if command:
        _same_end(_wait_for(command))
    os.chdir(job["folder"])
    limit(job["limits"])
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setsid()
    os.execve(job["command"][0], job["command"], job["environment"])


if __name__ == "__main__":
    main()
