#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is the version of meson.build the one that everything names, and does it move with the protocol (docs/upgrading.md)?

usage: tests/versions.py

CHANGELOG.md names a protocol for each version, MAJOR moves exactly when that does, and the top one is what the code speaks. Ends with "N passed,
N failed, N skipped"; exit status 1 if any failed.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"^## \[(.*?)\] - (.*)\n\n(.*)", re.MULTILINE)
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
SPEAKS = re.compile(r"Protocol (\d+), greeting (\d+)\.")
EASYBUILD = "packaging/easybuild/UCI-*.eb"
# file, pattern of the version in it: each place that it is found in, at least one
PLACES = [
    ("debian/changelog", r"\Auci \((.*?)\)"),
    ("packaging/rpm/uci.spec", r"^Version: +(.*)"),
    ("packaging/rpm/uci.spec", r"uci-(\d[\d.]*?)(?:/|\.tar)"),
    ("packaging/rpm/uci.spec", r"(?s)%changelog\n\*[^\n]* - (\S+)-\d+\n"),
    (EASYBUILD, r"^version = '(.*)'"),
    (EASYBUILD, r"uci-(\d[\d.]*?)(?:/|\.tar)"),
    ("docs/admin.md", r"`UCI (\S+) on:"),
    ("docs/upgrading.md", r"`uci_info \(UCI\) (\S+) \("),
]
# the same of the protocol
PROTOCOL_PLACES = [
    ("docs/design.md", r"^ +10 +1 +protocol +(\d+)$"),
    ("docs/upgrading.md", r"protocol (\d+), built with"),
    ("docs/upgrading.md", r"this one speaks (\d+)"),
]


def one_file(pattern):
    """The only file of that name."""
    found = list(ROOT.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def number_of(path, name):
    """What a header defines NAME as."""
    return int(re.search(rf"^#define {name} +(\d+)$", (ROOT / path).read_text(), re.MULTILINE).group(1))


def changelog_wrong(changelog, version, speaks):
    """What is wrong in the text of CHANGELOG.md where the code is VERSION and SPEAKS (protocol, greeting); None if nothing."""
    entries = []
    for name, date, first in ENTRY.findall(changelog):
        number, spoken = VERSION.fullmatch(name), SPEAKS.match(first)
        if not number or not re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", date):
            return f"'{name} - {date}' is no version with a date (or 'unreleased')"
        if not spoken:
            return f"{name} does not begin with what it speaks: 'Protocol N, greeting N.'"
        entries.append((tuple(map(int, number.groups())), tuple(map(int, spoken.groups()))))
    if not entries or len(entries) != len(re.findall("^## ", changelog, re.MULTILINE)):
        return "not each '## ' is an entry: '## [1.2.3] - date', an empty line, and what it speaks"
    for (newer, newer_speaks), (older, older_speaks) in zip(entries, entries[1:]):
        if newer <= older:
            return f"{newer} stands above {older}"
        if (newer[0] != older[0]) != (newer_speaks != older_speaks):
            return f"from {older} to {newer} MAJOR and protocol do not move together"
    if entries[0][0] != version:
        return f"the top entry is not the version of meson.build, {version}"
    if entries[0][1] != speaks:
        return f"the code speaks protocol and greeting {speaks}, the top entry says {entries[0][1]}: another protocol is another MAJOR version"
    return None


def places_wrong(places, number):
    """What names another one than this number."""
    for pattern, regex in places:
        path = one_file(pattern)
        found = re.findall(regex, path.read_text(), re.MULTILINE)
        if not found or set(found) != {number}:
            yield f"{path.relative_to(ROOT)}: {', '.join(found) or 'none'} and not {number} ({regex})"


def checks():
    """(label, what is wrong or None) of each."""
    text = re.search(r"^ *version: '(.*)',$", (ROOT / "meson.build").read_text(), re.MULTILINE).group(1)
    version = tuple(map(int, VERSION.fullmatch(text).groups()))
    protocol, greeting = (number_of("pipeline/base/wire.h", f"UCI_{name}_VERSION") for name in ("PROTOCOL", "GREETING"))
    changelog = (ROOT / "CHANGELOG.md").read_text()
    nothing = "nothing is said of it"

    def notices(*arguments):
        return None if changelog_wrong(*arguments) else nothing

    yield "CHANGELOG.md's top entry has meson.build's version, and the protocol that the code speaks", changelog_wrong(changelog, version, (protocol, greeting))
    yield "another protocol in the code would be noticed", notices(changelog, version, (protocol + 1, greeting))
    yield "another greeting in the code would be noticed", notices(changelog, version, (protocol, greeting + 1))
    yield "another version in meson.build would be noticed", notices(changelog, (*version[:2], version[2] + 1), (protocol, greeting))
    entry = f"## [{version[0]}.{version[1] + 1}.0] - unreleased\n\nProtocol {protocol + 1}, greeting {greeting}.\n\n"
    yield ("a protocol that moves with MINOR alone would be noticed",
           notices(changelog.replace("## ", entry + "## ", 1), (version[0], version[1] + 1, 0), (protocol + 1, greeting)))
    yield "documents name the protocol of the code", "; ".join(places_wrong(PROTOCOL_PLACES, str(protocol))) or None
    wrong = [*places_wrong(PLACES, text)]
    if not one_file(EASYBUILD).name.startswith(f"UCI-{text}-"):
        wrong.append(f"{one_file(EASYBUILD).name} is not named after version {text}")
    yield "packages, recipes and documents name that version", "; ".join(wrong) or None


def main():
    passed = failed = 0
    for label, wrong in checks():
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        print(f"ok   {label}" if wrong is None else f"FAIL {label}: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


main()
