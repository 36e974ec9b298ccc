# SPDX-License-Identifier: BSD-3-Clause
"""Which file needs which: a graph of includes and of calls, and its circles.

A file is named by its folder, room and stem, so that foo.c, foo.h and foo.inl are one: "pipeline/link/foo". An edge from one to another
says that the first includes a file of the second, or uses a function or variable that the second defines (by the symbols of
the compiled objects). A circle is a strongly connected component: each of its files needs, in the end, all others.
"""
import random
import re
import subprocess
from pathlib import Path

SOURCES = (".c", ".h", ".inl")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ATTEMPTS = 300  # orders to start from in search of few cuts: 20 files need some ten


def file_name(root, path):
    """ROOT/pipeline/link/foo.c -> pipeline/link/foo."""
    return str(path.relative_to(root).with_suffix(""))


def is_part(name):
    """Is this a header that declares a room's part of the state (foo_part.h)? It may be known below its room: whoever puts parts together."""
    return name.endswith("_part")


def room_of(name):
    """pipeline/link/foo -> pipeline/link; parts are a room of their own, below all that hold some."""
    return f"{name.split('/')[0]}/parts" if is_part(name) else name.rsplit("/", 1)[0]


def sources_of(root, folders):
    """The files of FOLDERS, sorted."""
    return [path for folder in folders for path in sorted((root / folder).rglob("*")) if path.suffix in SOURCES]


def add_edge(graph, source, target, why):
    """Note that SOURCE needs TARGET because of WHY, a symbol or an included file."""
    graph.setdefault(source, {})
    if source != target:
        graph.setdefault(target, {})
        graph[source].setdefault(target, set()).add(why)


def includes_of(root, folders, path):
    """The files of FOLDERS that a file includes: its neighbours, "room/foo.h" of any folder, and what core/api installs."""
    places = [path.parent, *(root / folder for folder in folders), root / "core" / "api"]
    for name in INCLUDE.findall(path.read_text()):
        found = next((place / name for place in places if (place / name).exists()), None)
        if found:
            yield found


def add_includes(graph, root, folders):
    """Edges for what the files of FOLDERS include from each other."""
    for path in sources_of(root, folders):
        graph.setdefault(file_name(root, path), {})
        for header in includes_of(root, folders, path):
            add_edge(graph, file_name(root, path), file_name(root, header), header.name)


def symbols_of(path):
    """The symbols that an object defines for others, and those it wants."""
    lines = subprocess.run(["nm", "-g", str(path)], check=True, capture_output=True, text=True).stdout.splitlines()
    kinds = [line.split()[-2:] for line in lines if len(line.split()) >= 2]
    return {name for kind, name in kinds if kind != "U"}, {name for kind, name in kinds if kind == "U"}


def objects_of(root, build, folder):
    """File -> its object. Objects are named after room and file, those of the library itself after their folder too."""
    paths = {path.name.removeprefix(f"{folder}_"): path
             for path in [*(build / folder).glob("*.a.p/*.c.o"), *build.glob(f"*.so.p/{folder}_*.c.o")]}
    names = {f"{path.parent.name}_{path.name}.o": file_name(root, path) for path in sources_of(root, [folder])}
    return {names[name]: path for name, path in paths.items() if name in names}


def add_uses(graph, root, build, folders):
    """Edges for the symbols that objects of FOLDERS, by name, use of each other. Returns how many objects there are."""
    objects = {name: symbols_of(path) for folder in folders for name, path in objects_of(root, build, folder).items()}
    owners = {symbol: name for name, (defined, _) in objects.items() for symbol in defined}
    for name, (_, wanted) in objects.items():
        for symbol in wanted & owners.keys():
            add_edge(graph, name, owners[symbol], symbol)
    return len(objects)


def file_graph(root, build, folders):
    """File -> file -> why, for the files of FOLDERS; it takes the objects of a whole build."""
    graph = {}
    add_includes(graph, root, folders)
    objects = add_uses(graph, root, build, folders)
    sources = sum(path.suffix == ".c" for path in sources_of(root, folders))
    if objects < sources:
        raise FileNotFoundError(f"{build} has {objects} objects of {sources} sources: build all first")
    return graph


def rooms_of(graph):
    """Room -> room -> why: the same graph of rooms, with "file -> file" as reasons."""
    rooms = {room_of(name): {} for name in graph}
    for name, targets in graph.items():
        for target in targets:
            add_edge(rooms, room_of(name), room_of(target), f"{name} -> {target}")
    return rooms


def part_of(graph, names):
    """The graph of some files, and of the edges between them."""
    return {name: {target: why for target, why in graph[name].items() if target in names} for name in graph
            if name in names}


def reachable(graph, start):
    """All that can be reached from START, itself included."""
    seen, todo = {start}, [start]
    while todo:
        for target in graph[todo.pop()]:
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def circles_of(graph):
    """Sets of at least two files that all need each other, largest first."""
    reach = {name: reachable(graph, name) for name in graph}
    circles = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph}
    return sorted((circle for circle in circles if len(circle) > 1), key=lambda circle: (-len(circle), sorted(circle)))


def largest(graph):
    """Files in the largest circle; 1 if there is none."""
    return max((len(circle) for circle in circles_of(graph)), default=1)


# --- where to cut ---

def without(graph, cuts):
    """The graph without some edges."""
    return {name: {target: why for target, why in targets.items() if (name, target) not in cuts}
            for name, targets in graph.items()}


def weight(graph, source, target):
    """What it takes to do without an edge: the symbols and headers that lead along it."""
    return len(graph[source].get(target, ()))


def costs_of_places(graph, others, name):
    """What leads back to or from NAME if it is put at each place among OTHERS."""
    costs = [sum(weight(graph, other, name) for other in others)]  # in front of all: every user leads back
    for other in others:
        costs.append(costs[-1] + weight(graph, name, other) - weight(graph, other, name))
    return costs


def improve(graph, order):
    """Move single files within an order, users first, as long as that makes the edges that lead back fewer."""
    moved = True
    while moved:
        moved = False
        for name in list(order):
            costs = costs_of_places(graph, [other for other in order if other != name], name)
            best, old = costs.index(min(costs)), order.index(name)
            if costs[best] < costs[old]:
                order.remove(name)
                order.insert(best, name)
                moved = True
    return order


def edges_back(graph, order):
    """The edges from files to such as come before them."""
    place = {name: i for i, name in enumerate(order)}
    return {(name, target) for name in graph for target in graph[name] if place[target] < place[name]}


def cuts_of(graph, limit):
    """A small set of edges without which no circle has more than LIMIT files. Greedy; the same at each call."""
    shuffler, best, best_cost = random.Random(0), None, None
    for _ in range(ATTEMPTS):
        order = sorted(graph)
        shuffler.shuffle(order)
        cuts = edges_back(graph, improve(graph, order))
        cost = sum(weight(graph, *cut) for cut in cuts)
        if best is None or cost < best_cost:
            best, best_cost = cuts, cost
    for cut in sorted(best, key=lambda edge: (-weight(graph, *edge), edge)):  # what is dear may stay
        if largest(without(graph, best - {cut})) <= limit:
            best = best - {cut}
    return sorted(best, key=lambda edge: (weight(graph, *edge), edge))


# --- for people ---

def describe(graph, limit):
    """Lines: the edges, file by file, then the circles, with where to cut those of more than LIMIT files."""
    lines = [f"{name} -> {' '.join(sorted(graph[name])) or '(nothing)'}" for name in sorted(graph)]
    for circle in circles_of(graph):
        lines += ["", f"circle of {len(circle)}: {' '.join(sorted(circle))}"]
        if len(circle) > limit:
            part = part_of(graph, circle)
            cuts = cuts_of(part, limit)
            lines.append(f"  no circle of more than {limit} is left without these {len(cuts)} edges:")
            lines += [f"    {source} -> {target}: {' '.join(sorted(part[source][target]))}" for source, target in cuts]
    return lines
