# SPDX-License-Identifier: BSD-3-Clause
"""The key of a job whose messages are sealed (UCI_SEAL): made in a file of the job's folder, which its user alone can read, and gone when
the job has ended. Ranks are told where it is, never what it is."""
import contextlib
import os
import secrets
import shlex
from pathlib import Path

from uci_job import JobError

NAME = "key"
BYTES = 32


def variables_of(folder, mode, scope, own):
    """Variables for the ranks of a job that seals; OWN are those that the user gives them, with a key file of the user's if there is one."""
    variables = {"UCI_SEAL": mode}
    if scope:
        variables["UCI_SEAL_SCOPE"] = scope
    if not own.get("UCI_KEY_FILE"):
        variables["UCI_KEY_FILE"] = str(folder / NAME).replace("%", "%%")
    return variables


def commands_of(folder):
    """Command lines for a shell that make such a file, and remove it: (before the job, after it, whose status stays)."""
    path = shlex.quote(str(folder / NAME))
    return f"mkdir -p {shlex.quote(str(folder))} && (umask 077; openssl rand -hex {BYTES} >{path})", f"status=$?; rm -f {path}; (exit $status)"


def make(path):
    """A new key in a new file."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise JobError(f"{path} is there already: give --folder a new one, or UCI_KEY_FILE if it is the key to use") from error
    except OSError as error:
        raise JobError(f"cannot make the key file {path}: {error.strerror}; give --folder another folder") from error
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        os.fchmod(handle, 0o600)  # where the umask, or a default ACL, has made something else of it
        stream.write(f"{secrets.token_hex(BYTES)}\n")


@contextlib.contextmanager
def key_file(folder):
    """For as long as the job runs, there is a key in FOLDER."""
    path = Path(folder) / NAME
    make(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
