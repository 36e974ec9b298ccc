# SPDX-License-Identifier: BSD-3-Clause
"""What one node says of itself to uci_run --preflight: a line of JSON. It is sent there as an argument of python3, as a node may have no UCI, and so it
stands alone.

    python3 -c SOURCE UCI_INFO LIBRARY LAUNCHER FOLDER
"""
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import time

LIMIT = 8  # seconds for each program that is asked
PRINT = 12  # digits of a digest: enough to tell two apart, and of a key nothing that helps to guess it
SAID = 1000  # characters of what UCI says about its settings


def ask(*command):
    """What a program prints on stdout, or "": there is none, or it ends otherwise than it should."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                              check=False, timeout=LIMIT).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def fingerprint(path):
    """(digest of a file, "") or (None, why not)."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
    except OSError as error:
        return None, error.strerror
    return digest.hexdigest()[:PRINT], ""


def tell_uci(tool, library):
    """What uci_info finds, whose process is attached as each rank would be."""
    try:
        found = json.loads(ask(tool, "--check", "--json"))
    except ValueError:
        found = {}
    built = dict(re.findall(r"^(version|revision|protocol): (.*)$", ask(tool, "-v"), re.MULTILINE))
    path = found.get("uci_library") or library
    return {"tool": bool(found), "state": found.get("state"), "how": found.get("how"), "version": found.get("uci_version"),
            "protocol": built.get("protocol"), "library": path, "bytes": fingerprint(path)[0], "mode": found.get("mode"),
            "settings": {name: setting["value"] for name, setting in found.get("settings", {}).items()}, "ucx": found.get("ucx_version"),
            "advice": found.get("advice", [])[:1], "said": (found.get("said") or "")[:SAID]}


def tell_key():
    """The file of UCI_KEY_FILE, if it is set: what names no key, but tells whether two are the same."""
    path = os.environ.get("UCI_KEY_FILE", "").replace("%h", socket.gethostname()).replace("%%", "%")
    if not path or os.environ.get("UCI_SEAL", "off") == "off":
        return None
    print_of, why = fingerprint(path)
    return {"path": path, "print": print_of, "why": why}


def tell_memory(path):
    """(size, free) in bytes of what is mounted there."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return usage.total, usage.free


def tell_limits():
    """Soft limits; None is no limit."""
    limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[0] for name in ("memlock", "nofile", "core")}
    return {name: None if value == resource.RLIM_INFINITY else value for name, value in limits.items()}


def tell_launcher(path):
    """The MPI that is installed there, by its launcher."""
    text = ask(path, "--version")
    version = re.search(r"(\d+\.\d+[^\s)]*)", text)
    return version.group(1) if version else None


def main():
    """All of it."""
    tool, library, launcher, folder = sys.argv[1:5]
    node = {"uci": tell_uci(tool, library), "key": tell_key(), "shm": tell_memory("/dev/shm"), "limits": tell_limits(), "mpi": tell_launcher(launcher),
            "sees_folder": os.access(folder, os.W_OK), "rdma": sorted(os.listdir("/sys/class/infiniband")) if os.path.isdir("/sys/class/infiniband") else [],
            "machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(), "host": socket.gethostname(),
            "time": time.time()}  # the last: what is between now and its arrival is what the clock can't be told from
    print(f"\nUCI-NODE {json.dumps(node)}", flush=True)


if __name__ == "__main__":
    main()
