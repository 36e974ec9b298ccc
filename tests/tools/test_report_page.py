#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The page of uci_report in a headless Chromium, driven by Selenium (Debian's, hence Debian's Python): what must be there is there, nothing
complains or is loaded, keys work, text can be read on light and dark screens and on paper, and the report of a large job opens in 3 s.

usage: test_report_page.py UCI_REPORT PICTURES [RECORDS]; PICTURES is a folder for screenshots, RECORDS those of the large job (100000).
Ends with "N passed, N failed, N skipped".
"""
import base64
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from make_history import TOPOLOGY, Cluster
from test_report import MAKE_RUN, MAKE_TWINS, run_tests

try:
    from selenium import webdriver
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("skip the page in a browser: python3-selenium is not installed (tools/install_deps.sh browser)\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("skip the page in a browser: chromium or chromedriver is not installed (tools/install_deps.sh browser)\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)
TOOL, PICTURES = sys.argv[1], Path(sys.argv[2])
RECORDS = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
OPEN_LIMIT = 3.0   # seconds
CONTRAST = 4.5     # of WCAG 2, AA

# Least contrast of any text with what is painted behind it, and the text.
LEAST_CONTRAST = """
const channel = value => (value /= 255) <= .04045 ? value / 12.92 : Math.pow((value + .055) / 1.055, 2.4);
const light = rgb => .2126 * channel(rgb[0]) + .7152 * channel(rgb[1]) + .0722 * channel(rgb[2]);
const parse = text => text.match(/[\\d.]+/g).map(Number);
const behind = element => { for (; element; element = element.parentElement) {
    const color = parse(getComputedStyle(element).backgroundColor); if (color.length < 4 || color[3] > 0) return color; }
    return [255, 255, 255]; };
let least = [99, ""];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !element.getClientRects().length || element.closest("script,style,.skip")) continue;
    const style = getComputedStyle(element), ink = light(parse(element.closest("svg") ? style.fill : style.color)), paper = light(behind(element));
    const ratio = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
    if (ratio < least[0]) least = [ratio, text];
}
return least;
"""


class PageTest(unittest.TestCase):
    """One browser and one report for all tests, another for the large job."""

    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="uci-report-page."))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        PICTURES.mkdir(parents=True, exist_ok=True)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1300,900", "--hide-scrollbars",
                         f"--user-data-dir={cls.work}/profile"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=webdriver.chrome.service.Service(DRIVER), options=options)
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.execute_cdp_cmd("Network.enable", {})
        cls.make("hostile", "--records", 40, "--hostile", "--damaged", "--lost", .2, "--changed", .1, "--without", 3)
        cls.make("twins", "--wrong-twin", 1, "--near", "--ranks", 100, "--messages", 30000, "--hostile", maker=MAKE_TWINS)

    @classmethod
    def make(cls, name, *options, maker=MAKE_RUN):
        """The report of a synthetic run."""
        subprocess.run([sys.executable, maker, cls.work / name, *map(str, options)], check=True)
        begin = time.monotonic()
        subprocess.run([TOOL, cls.work / name, "-o", cls.work / f"{name}.html"], check=True, stderr=subprocess.DEVNULL)
        return time.monotonic() - begin

    def open(self, name="hostile", scheme="light", media=""):
        """Open a report. @return seconds until it is drawn."""
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        begin = time.monotonic()
        self.browser.get((self.work / f"{name}.html").as_uri())
        self.script("return new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        seconds = time.monotonic() - begin
        self.assertEqual(self.browser.get_log("browser"), [])
        self.assertEqual(self.script("return document.documentElement.dataset.ready") is None, self.count("script") == 0)
        return seconds

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def count(self, selector):
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)

    def picture(self, name):
        """All of the page, as far as pictures go."""
        height = min(self.script("return document.documentElement.scrollHeight"), 6000)
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": 1300, "height": height, "scale": 1}})
        (PICTURES / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def test_elements(self):
        self.open()
        for selector, least in (("h1", 1), (".map svg .cell", 3), ("#timeline svg .stacked", 3), (".message", 20), (".hex mark", 20),
                                (".chunks svg .stacked", 20), ("table caption", 8), ("#files tbody tr", 12), ("main section", 8), (".stack li", 3)):
            self.assertGreaterEqual(self.count(selector), least, selector)
        self.assertEqual(self.count("table thead th:not([scope])"), 0)
        self.assertEqual(self.count("svg:not([aria-label])"), 0)
        ids = self.script("return [...document.querySelectorAll('[id]')].map(element => element.id)")
        self.assertEqual(len(ids), len(set(ids)))
        for link in self.script("return [...document.querySelectorAll('nav a')].map(link => link.hash.slice(1))"):
            self.assertIn(link, ids)

    def test_hostile_text_does_nothing(self):
        self.open()
        self.assertTrue(self.browser.title.startswith("UCI: Not delivered intact"), self.browser.title)
        self.assertEqual(self.count("img"), 0)
        self.assertEqual(self.count("script"), 2)
        self.assertIn("<script>document.title", self.script("return document.body.innerText"))

    def test_a_foreign_script_would_not_run(self):
        page = (self.work / "hostile.html").read_text(encoding="utf-8")
        (self.work / "broken.html").write_text(page.replace("<main", "<script>document.title = 'owned'</script><main", 1), encoding="utf-8")
        self.browser.get((self.work / "broken.html").as_uri())
        self.assertNotEqual(self.browser.title, "owned")
        self.assertIn("Content Security Policy", self.browser.get_log("browser")[0]["message"])

    def test_nothing_is_loaded(self):
        self.open()
        self.assertEqual(self.script("return performance.getEntriesByType('resource').map(entry => entry.name).filter(name => !name.startsWith('data:'))"), [])

    def test_text_can_be_read(self):
        for scheme, media in (("light", ""), ("dark", ""), ("dark", "print")):
            self.open(scheme=scheme, media=media)
            self.script("document.querySelectorAll('.detail').forEach(row => row.hidden = false)")
            ratio, text = self.script(LEAST_CONTRAST)
            self.assertGreaterEqual(ratio, CONTRAST, f"{scheme} {media}: '{text}'")
            self.picture(media or scheme)

    def test_keys(self):
        self.open()
        for selector, keys in ((".map svg", "nn"), (".map svg", Keys.ARROW_DOWN), ("#timeline svg", Keys.END), ("#timeline svg", Keys.ARROW_LEFT)):
            before = self.script("return document.querySelector(arguments[0]).closest('figure').querySelector('output').textContent", selector)
            self.browser.find_element("css selector", selector).send_keys(keys)
            after = self.script("return document.querySelector(arguments[0]).closest('figure').querySelector('output').textContent", selector)
            self.assertNotEqual(before, after, f"{selector} {keys!r}")
        self.browser.find_element("css selector", "input[value=class]").send_keys(" ")
        self.assertIn("bit flip", self.script("return document.querySelector('.legend').textContent"))
        second = self.browser.find_elements("css selector", ".open")[1]
        self.assertTrue(self.script("return document.getElementById('message-2').hidden"))
        second.send_keys(Keys.ENTER)
        self.assertFalse(self.script("return document.getElementById('message-2').hidden"))
        self.assertEqual(second.get_attribute("aria-expanded"), "true")
        self.browser.find_element("id", "all").send_keys(" ")
        self.assertEqual(self.count(".detail[hidden]"), 0)

    def test_twins(self):
        for scheme, media in (("light", ""), ("dark", ""), ("dark", "print")):
            self.open("twins", scheme=scheme, media=media)
            ratio, text = self.script(LEAST_CONTRAST)
            self.assertGreaterEqual(ratio, CONTRAST, f"{scheme} {media}: '{text}'")
            self.picture(f"twins-{media or scheme}")
        self.open("twins")
        self.assertTrue(self.browser.title.startswith("UCI: Twins differ"), self.browser.title)
        self.assertEqual((self.count("img"), self.count("script"), self.count("svg:not([aria-label])")), (0, 2, 0))
        for selector, least in (("#spread svg .cell", 500), ("#spread svg .stacked", 20), (".map[data-map=twins] svg .cell", 50), ("#spread tbody tr", 30)):
            self.assertGreaterEqual(self.count(selector), least, selector)
        output = "return document.querySelector('#spread output').textContent"
        svg = self.browser.find_element("css selector", "#spread svg")
        svg.send_keys("n")
        self.assertRegex(self.script(output), r"^ranks \d+-\d+, .* UTC: \d+ of \d+ messages differed; all ranks: ")
        svg.send_keys(Keys.ARROW_LEFT)
        self.assertIn("no difference; all ranks: 0 of", self.script(output))
        self.browser.find_element("css selector", ".map[data-map=twins] svg").send_keys("n")
        self.assertRegex(self.script("return document.querySelector('.map output').textContent"), r"messages? differed")

    def test_history(self):
        cluster, topology = Cluster(self.work / "history"), self.work / "topology.conf"
        topology.write_text(TOPOLOGY)
        for month in range(3):
            cluster.run(cluster.some(16, "n5"), ["node n5", "cable s3"], month=month)
        subprocess.run([TOOL, "--history", "--topology", topology, "-o", self.work / "history.html", cluster.folder], check=True, stderr=subprocess.DEVNULL)
        for scheme, media in (("light", ""), ("dark", ""), ("dark", "print")):
            self.open("history", scheme=scheme, media=media)
            ratio, text = self.script(LEAST_CONTRAST)
            self.assertGreaterEqual(ratio, CONTRAST, f"{scheme} {media}: '{text}'")
            self.picture(f"history-{media or scheme}")
        self.assertEqual((self.count("script"), self.count("table thead th:not([scope])")), (0, 0))
        for selector, least in (("#places tbody tr", 3), ("#drain li", 1), ("#tables table", 5), ("h1", 1)):
            self.assertGreaterEqual(self.count(selector), least, selector)

    def test_tab_reaches_everything(self):
        self.open()
        wanted = self.script("return document.querySelectorAll('a[href], button, input:checked, summary, [tabindex=\"0\"]').length")
        reached = set()
        for _ in range(wanted + 5):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            reached.add(self.script("const e = document.activeElement; return [...document.querySelectorAll('*')].indexOf(e)"))
        hidden = self.script("return document.querySelectorAll('[hidden] [tabindex=\"0\"], details:not([open]) > :not(summary) [tabindex], details:not([open]) > [tabindex]').length")
        self.assertGreaterEqual(len(reached), wanted - hidden - 1)

    def test_paper(self):
        self.open(media="print")
        shown = self.script("return [...document.querySelectorAll('.detail')].filter(row => row.getClientRects().length).length")
        self.assertEqual(shown, 10)
        self.assertEqual(self.script("return getComputedStyle(document.querySelector('nav')).display"), "none")
        pdf = base64.b64decode(self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"])
        (PICTURES / "paper.pdf").write_bytes(pdf)
        self.assertGreater(len(pdf), 50000)

    def test_narrow_screen(self):
        self.open()
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
        try:
            self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), 391)
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_large_job_opens_in_time(self):
        seconds = self.make("large", "--records", RECORDS, "--ranks", 10000, "--per-host", 64, "--spread", "--lost", .001)
        opened = min(self.open("large") for _ in range(3))
        self.picture("large")
        print(f"{RECORDS:,} records of 10,000 ranks: made in {seconds:.1f} s, opened in {opened:.2f} s ", end="", flush=True)
        self.assertGreater(self.count(".map svg .cell"), 4000)
        self.assertLess(opened, OPEN_LIMIT)


if __name__ == "__main__":
    sys.exit(run_tests(PageTest))
