"""What the README shows of the command line and the report: run the commands, and take pictures.

python docs/make_screens.py    # needs Chromium; into docs/images
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from fairproj.datasets import load_adult

IMAGES = Path(__file__).parent / "images"
WIDTH = 92
TRAIN = "fairproj train adult.csv --label income --sensitive sex --drop fnlwgt --max-gap 0.05"
COMMANDS = [
    f"{TRAIN} -o model.fairproj",
    "fairproj audit model.fairproj adult.csv --max-gap 0.05",
    "fairproj report model.fairproj adult.csv -o report.html",
    f"{TRAIN} --search -o searched.fairproj",
    "fairproj report searched.fairproj adult.csv -o searched.html",
]
SHOWN = 1  # the command whose output is shown


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        load_adult().frame.to_csv(Path(folder) / "adult.csv", index=False)
        console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
        for number, command in enumerate(COMMANDS):
            said = run(command, folder)
            if number == SHOWN:
                console.print(Text(f"$ {command}", style="bold"))
                console.print(Text(said.rstrip()))
        console.save_svg(str(IMAGES / "terminal.svg"), title="fairproj", unique_id="fairproj")
        take_pictures(Path(folder))


def run(command: str, folder: str) -> str:
    line = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        line,
        cwd=folder,
        env={**os.environ, "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if done.returncode not in (0, 4):
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def take_pictures(folder: Path) -> None:
    """The top of a report down to its verdict, and the candidates of a search."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": 860, "height": 640}, device_scale_factor=1.5)
        tab.goto((folder / "report.html").as_uri())
        verdict = tab.locator("[data-test=summary]").bounding_box()
        height = verdict["y"] + verdict["height"]
        top = {"x": 0, "y": 0, "width": 860, "height": height}
        tab.screenshot(path=str(IMAGES / "report.png"), full_page=True, clip=top)
        tab.goto((folder / "searched.html").as_uri())
        section = tab.locator("[data-test=frontier]")
        section.scroll_into_view_if_needed()
        section.screenshot(path=str(IMAGES / "report-frontier.png"))
        browser.close()


if __name__ == "__main__":
    main()
