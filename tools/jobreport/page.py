# SPDX-License-Identifier: BSD-3-Clause
"""The report as one HTML file that asks nothing of any network: a Jinja2 template, and D3 to draw with.

All text goes through Jinja2's escaping, and what the script reads is JSON that cannot end its element. The page forbids
itself any other script (its policy names this one by digest), so that a record could not run one even if that failed.
"""
import base64
import hashlib
from pathlib import Path

from jobreport.history_tables import cell, shown
from jobreport.levels import LEVELS
from jobreport.twin_verdict import name_process
from jobreport.wording import count, listing, share, size

HERE = Path(__file__).resolve().parent
MODULES = ("array", "collection", "color", "format", "interpolate", "time", "time-format", "scale", "selection", "axis")
D3_FOLDER = "/usr/share/nodejs"
PACKAGES = "python3-jinja2 node-d3-axis node-d3-scale node-d3-selection"


class MissingError(Exception):
    """A page cannot be made on this machine; the text says what is missing and what to do."""


def load_d3(folder):
    """The modules of D3 that the page draws with, as one script."""
    parts = []
    for name in MODULES:
        path = Path(folder) / f"d3-{name}" / "dist" / f"d3-{name}.min.js"
        try:
            parts.append(path.read_text(encoding="utf-8").split("//# sourceMappingURL")[0].strip())
        except OSError as error:
            raise MissingError(f"the page is drawn with D3, and {path} is not there ({error.strerror}): apt-get install {PACKAGES}, or "
                               "give --d3 FOLDER with d3-scale/dist and the others in it, as npm installs them; --text and --json "
                               "need none of it") from error
    return "\n".join(parts)


def load_template(name):
    """One of the templates here, every value in which is escaped."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingError(f"the page is made with Jinja2, which is not there: apt-get install {PACKAGES}; --text and --json need none "
                           "of it") from error
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(str(HERE)), autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters.update(count=count, listing=listing, name_process=name_process, share=share, size=size, cell=cell, shown=shown)
    environment.globals.update(levels=LEVELS, style=(HERE / "page.css").read_text(encoding="utf-8"))
    return environment.get_template(name)


def render_page(model, d3_folder=D3_FOLDER):
    """The page. Raises MissingError."""
    template = load_template("page.html.j2")
    script = "\n" + load_d3(d3_folder) + "\n" + (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    twins = model["twins"] or {"map": None, "spread": None}
    drawn = {"time": model["time"], "maps": {**model["maps"], "twins": twins["map"]}, "spread": twins["spread"],
             "chunks": [{"length": record["length"], "chunks": record["chunks"]} for record in model["worst"]]}
    return template.render(report=model, drawn=drawn, script=script, script_digest=digest)


def render_history_page(history):
    """The page of --history, which has no script. Raises MissingError."""
    return load_template("history.html.j2").render(report=history)
