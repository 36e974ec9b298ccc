#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What UCI is linked with, has compiled in, opens and runs, with licences: as an SPDX 2.3 document, or as the table of docs/licences.md.

usage: packaging/sbom/sbom.py --table
       packaging/sbom/sbom.py FILE VERSION REVISION TIME PART[,PART]... [COMPONENT=VERSION]...

PARTs are what is built, COMPONENT=VERSION what Meson has found for it (packaging/meson.build): what was not there is not in the document.
TIME is that of the commit, in seconds, and may be empty; SOURCE_DATE_EPOCH comes first, as reproducible builds want it.
"""
import json
import os
import re
import sys
import time

OURS = "BSD-3-Clause"
# what is installed: id -> which files
PARTS = {"libucx_integrity": r"lib(ucx_integrity|uci_twin_time)\.so", "libuci": r"libuci\.so", "libuci_mpi": r"libuci_mpi_\w+\.so",
         "uci-tools": r"uci_\w+(\.\w+)?"}
# id: name, licence, address, names of its libraries; FOUND: Meson knows whether it is here, and its version
FOUND = {
    "ucx": ("UCX", "BSD-3-Clause", "https://openucx.org", r"libuc[ps]\.so\.0"),
    "xxhash": ("xxHash", "BSD-2-Clause", "https://xxhash.com", None),
    "isal": ("ISA-L", "BSD-3-Clause", "https://github.com/intel/isa-l", r"libisal\.so\.2"),
    "jansson": ("Jansson", "MIT", "https://github.com/akheron/jansson", r"libjansson\.so\.4"),
    "openssl": ("OpenSSL", "Apache-2.0", "https://www.openssl.org", r"libcrypto\.so\.3"),
    "ipsec-mb": ("intel-ipsec-mb", "BSD-3-Clause", "https://github.com/intel/intel-ipsec-mb", r"libIPSec_MB\.so\.1"),
    "ncurses": ("ncurses", "X11-distribute-modifications-variant", "https://invisible-island.net/ncurses/", r"lib(ncursesw?|tinfo)\.so\.6"),
    "rdma-core": ("libibverbs of rdma-core", "GPL-2.0-only OR Linux-OpenIB", "https://github.com/linux-rdma/rdma-core", r"libibverbs\.so\.1"),
    "openmpi": ("Open MPI", "BSD-3-Clause", "https://www.open-mpi.org", r"libmpi\.so\.[48]0"),
    "mpich": ("MPICH", "mpich2", "https://www.mpich.org", r"libmpi(ch)?\.so\.12"),
}
OTHERS = {
    "libc": ("GNU C library", "LGPL-2.1-or-later", "https://www.gnu.org/software/libc/", r"lib(c|m|dl|pthread)\.so\.\d|ld-linux.*"),
    "libgomp": ("OpenMP's runtime of GCC", "GPL-3.0-or-later WITH GCC-exception-3.1", "https://gcc.gnu.org", r"libgomp\.so\.1"),
    "python": ("Python", "PSF-2.0", "https://www.python.org", None),
    "jinja2": ("Jinja2", "BSD-3-Clause", "https://palletsprojects.com/p/jinja/", None),
    "d3": ("D3 (modules; ISC from d3-selection 3 on)", "BSD-3-Clause", "https://d3js.org", None),
    "elfutils": ("eu-addr2line of elfutils, or addr2line of binutils", "GPL-3.0-or-later", "https://sourceware.org/elfutils/", None),
}
LINKED = "linked: loaded with it"
COMPILED = "headers: its code is compiled in"
OPENED = "opened when it is needed"
THERE = "called where the process has it; never loaded"
RUN = "run, or imported"
COPIED = "copied into the page that uci_report writes"
RELATIONS = {LINKED: "DYNAMIC_LINK", COMPILED: "STATIC_LINK", OPENED: "OPTIONAL_DEPENDENCY_OF", THERE: "OPTIONAL_DEPENDENCY_OF", RUN: "RUNTIME_DEPENDENCY_OF",
             COPIED: "OPTIONAL_DEPENDENCY_OF"}
USES = [
    ("libucx_integrity", LINKED, ["libc"]), ("libucx_integrity", COMPILED, ["xxhash"]), ("libucx_integrity", THERE, ["ucx", "openmpi", "mpich"]),
    ("libucx_integrity", OPENED, ["isal", "jansson", "openssl", "ipsec-mb"]),
    ("libuci", LINKED, ["libc", "libgomp"]), ("libuci", COMPILED, ["xxhash"]), ("libuci", OPENED, ["isal"]),
    ("libuci_mpi", LINKED, ["libc"]), ("libuci_mpi", COMPILED, ["xxhash"]), ("libuci_mpi", THERE, ["openmpi", "mpich"]), ("libuci_mpi", OPENED, ["isal"]),
    ("uci-tools", LINKED, ["libc", "libgomp", "jansson", "ncurses", "ucx", "openmpi", "mpich"]), ("uci-tools", COMPILED, ["xxhash"]),
    ("uci-tools", OPENED, ["isal", "openssl", "ipsec-mb", "rdma-core"]), ("uci-tools", RUN, ["python", "jinja2", "elfutils"]),
    ("uci-tools", COPIED, ["d3"]),
]


def table():
    """Markdown: a row for each component, with what it is for whom."""
    rows = ["| | licence (SPDX) | of what | how |", "|---|---|---|---|"]
    for component, (name, licence, _, _) in {**FOUND, **OTHERS}.items():
        ways = {}
        for part, how, components in USES:
            if component in components:
                ways.setdefault(how, []).append(f"`{part}`" if part != "uci-tools" else "tools")
        rows += [f"| {name} | {licence} | {', '.join(parts)} | {how} |" for how, parts in ways.items()]
    return "\n".join(rows) + "\n"


def package(ident, name, licence, address, version):
    """A package of the document."""
    return {"SPDXID": f"SPDXRef-{ident.replace('_', '-')}", "name": name, **({"versionInfo": version} if version else {}),
            "downloadLocation": "NOASSERTION", **({"homepage": address} if address else {}), "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION"}


def relation(one, kind, other, comment=None):
    """ONE is, or does, KIND to OTHER."""
    one, other = (f"SPDXRef-{name.replace('_', '-')}" for name in (one, other))
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other, **({"comment": comment} if comment else {})}


def uses(parts, found):
    """(part, how, component) of what is built and was found."""
    return [(part, how, name) for part, how, names in USES if part in parts for name in names if name in found or name in OTHERS]


def document(version, revision, when, parts, found):
    """The whole of it. FOUND: component -> version."""
    used = uses(parts, found)
    packages = [package("uci", "UCI", OURS, None, version)] + [package(part, part, OURS, None, version) for part in parts]
    for name, (title, licence, address, _) in {**FOUND, **OTHERS}.items():
        if any(name == component for _, _, component in used):
            packages.append(package(name, title, licence, address, found.get(name)))
    relations = [relation("DOCUMENT", "DESCRIBES", "uci")] + [relation("uci", "CONTAINS", part) for part in parts]
    for part, how, component in used:
        ends = (part, component) if RELATIONS[how].endswith("LINK") else (component, part)
        relations.append(relation(ends[0], RELATIONS[how], ends[1], how))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"uci-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/uci-{version}-{revision}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)), "creators": [f"Tool: sbom.py-{version}"]},
            "packages": packages, "relationships": relations}


def main():
    if sys.argv[1:] == ["--table"]:
        sys.stdout.write(table())
        return
    path, version, revision, commit_time, parts, *pairs = sys.argv[1:]
    parts, found = parts.split(","), dict(pair.split("=", 1) for pair in pairs)
    unknown = (set(found) - set(FOUND)) | (set(parts) - set(PARTS))
    if unknown:
        sys.exit(f"sbom.py: nothing is known of {', '.join(sorted(unknown))}")
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or commit_time or time.time())
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document(version, re.sub(r"[^A-Za-z0-9.-]", "-", revision), when, parts, found), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
