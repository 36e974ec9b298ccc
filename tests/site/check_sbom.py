#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: tests/site/check_sbom.py PREFIX

Is share/uci/uci.spdx.json of an installation SPDX 2.3 by the rules of its specification that it can break, and true: do programs and libraries
below PREFIX need, and name to be opened, nothing but what it says of them? Is docs/licences.md the same list? (Debian 12 has no checker of SPDX.)"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging/sbom"))
import sbom  # noqa: E402 pylint: disable=wrong-import-position

REQUIRED = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": r"\S+", "documentNamespace": r"https://[^#\s]+"}
IDENT = r"SPDXRef-[A-Za-z0-9.-]+"
LICENCE = r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*"
KINDS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK", "OPTIONAL_DEPENDENCY_OF", "RUNTIME_DEPENDENCY_OF"}  # of the specification's that we use
# names that are only looked for among what is loaded (RTLD_NOLOAD), and our own
LOOKED_FOR = r"lib(cuda|amdhip64|ze_loader|ucm)\.so(\.\d)?|lib(ucx_integrity|uci\w*|ucs_uci)\.so.*"


def form_wrong(document):
    """What is not as the specification has it."""
    for field, pattern in REQUIRED.items():
        if not re.fullmatch(pattern, document.get(field, "")):
            yield f"{field}: {document.get(field)}"
    made = document["creationInfo"]
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["created"]) or not all(re.match(r"(Tool|Person|Organization): \S", name)
                                                                                        for name in made["creators"] or [""]):
        yield f"creationInfo: {made}"
    idents = [package["SPDXID"] for package in document["packages"]]
    if len(set(idents)) != len(idents):
        yield "an SPDXID twice"
    for package in document["packages"]:
        if not re.fullmatch(IDENT, package["SPDXID"]) or not package["name"] or not package["downloadLocation"] or package["filesAnalyzed"] is not False:
            yield f"package: {package}"
        if not re.fullmatch(LICENCE, package["licenseDeclared"]):
            yield f"licence of {package['name']}: {package['licenseDeclared']}"
    for relation in document["relationships"]:
        if relation["relationshipType"] not in KINDS or not {relation["spdxElementId"], relation["relatedSpdxElement"]} <= {*idents, "SPDXRef-DOCUMENT"}:
            yield f"relation: {relation}"
    if not any(relation["relationshipType"] == "DESCRIBES" for relation in document["relationships"]):
        yield "it describes nothing"


def names_of(path):
    """Libraries that an ELF file needs, and names of libraries in its text."""
    def read(*command):
        return subprocess.run([*command, path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-d"))), set(re.findall(r"^lib[\w+-]+\.so[.\d]*$", read("strings", "-a"), re.MULTILINE))


def unsaid(document, prefix):
    """Libraries that a file needs or names, and that the document does not connect with it."""
    ends = [(relation["spdxElementId"], relation["relatedSpdxElement"], relation["relationshipType"]) for relation in document["relationships"]]
    for path in sorted(path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF"):
        part = next(name for name, pattern in sbom.PARTS.items() if re.match(pattern + "($|[.])", path.name))
        ident = f"SPDXRef-{part.replace('_', '-')}"
        known = {name: row[3] for name, row in {**sbom.FOUND, **sbom.OTHERS}.items() if row[3]}

        def said(library, kinds, ident=ident, known=known):
            return any(re.fullmatch(pattern, library) and any(kind in kinds and {ident, f"SPDXRef-{name}"} == {one, other} for one, other, kind in ends)
                       for name, pattern in known.items())
        needed, named = names_of(path)
        yield from (f"{path.name} needs {name}" for name in sorted(needed) if not said(name, {"DYNAMIC_LINK"}))
        yield from (f"{path.name} names {name}" for name in sorted(named - needed)
                    if not re.fullmatch(LOOKED_FOR, name) and not said(name, {"DYNAMIC_LINK", "OPTIONAL_DEPENDENCY_OF"}))


def main():
    prefix = Path(sys.argv[1])
    document = json.loads((prefix / "share/uci/uci.spdx.json").read_text(encoding="utf-8"))
    wrong = [*form_wrong(document), *unsaid(document, prefix)]
    if sbom.table() not in (ROOT / "docs/licences.md").read_text(encoding="utf-8"):
        wrong.append("docs/licences.md has not the table of packaging/sbom/sbom.py --table")
    # a checker that finds nothing is none
    for ident in ("SPDXRef-jansson", "SPDXRef-isal"):
        less = {**document, "relationships": [row for row in document["relationships"] if ident not in row.values()]}
        if not list(unsaid(less, prefix)):
            wrong.append(f"without {ident} nothing would be missed")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
