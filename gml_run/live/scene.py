# SPDX-License-Identifier: Apache-2.0
"""The full screen: a head, the view that was chosen, the program's last lines, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from gml_run.analysis.events import event_rows
from gml_run.analysis.frame import Frame
from gml_run.analysis.history import Point
from gml_run.analysis.steps import NONE, Steps
from gml_run.live.page import overview_lines
from gml_run.live.views import fragmentation_lines, map_view_lines, rank_view_lines, stitching_lines, timeline_lines
from gml_run.telemetry.reader import ProcessSnapshot
from gml_run.units import format_seconds, shorten

VIEWS = ("overview", "timeline", "fragmentation", "stitching", "map", "ranks, log")
_SHORT = ("all", "time", "frag", "stitch", "map", "log")
_LOG_SHARE = 3  # the log pane takes one part in so many of the screen
_FEWEST_LOG = 5

HELP = (
    "1-6    choose a view: " + ", ".join(VIEWS),
    "space  stop and go on painting; the program is not touched",
    "q      leave; while the program waits for input, all keys are its own",
    "",
    "held       memory taken from the driver; PyTorch calls it reserved",
    "in use     live blocks, each rounded up to 512 bytes; PyTorch: allocated",
    "idle       held, wholly free, and given out at once to whoever asks",
    "scattered  held and free, but in chunks that are partly in use",
    "waiting    freed, while work on another stream may still touch it",
    "outside    in use on the device by others: context, libraries, processes",
    "stitched   free chunks from several places, mapped to one new address",
    "extended   free chunks, mapped behind a free range to make it longer",
)


@dataclass(slots=True)
class Scene:
    """Everything that is shown; the keys change `view`, `paused` and `help`."""

    title: str
    state: str = "running"
    elapsed: float = 0.0
    frame: Frame | None = None
    processes: Sequence[ProcessSnapshot] = ()
    points: Sequence[Point] = ()
    steps: Steps = NONE
    started: float = 0.0  # time.time() when the run began
    notices: Sequence[str] = ()  # what gml-run had to say then
    budget: float | None = None  # percent of the time that stitching may cost
    view: int = 1
    paused: bool = False
    help: bool = False
    colours: bool = True
    leaves: str = "quit"  # what q does

    def press(self, key: str) -> bool:
        """Takes a key; False when it is none of the scene's."""
        if key in "123456":
            self.view, self.help = int(key), False
        elif key == " ":
            self.paused = not self.paused
        elif key == "?":
            self.help = not self.help
        else:
            return False
        return True


def log_rows(rows: int) -> int:
    """Lines of the log pane on a screen of `rows`."""
    return max(_FEWEST_LOG, rows // _LOG_SHARE)


def scene_lines(scene: Scene, rows: int, columns: int, log: Sequence[str] | None = None) -> list[Text]:
    """Exactly `rows` lines; `log` are the program's last lines, where there is a pane for them."""
    pane = log_rows(rows) if log is not None else 0
    body = _body(scene, rows - 2 - (pane + 1 if pane else 0), columns)
    lines = [_head(scene, columns), *body, *[Text()] * (rows - 2 - (pane + 1 if pane else 0) - len(body))]
    if log is not None:
        lines.append(Text(f"── output {'─' * max(1, columns - 10)}", style="dim"))
        lines += [Text(line) for line in log[-pane:]]
        lines += [Text()] * (pane - min(pane, len(log)))
    return [*lines, _foot(scene, columns)]


def _head(scene: Scene, columns: int) -> Text:
    state = "paused" if scene.paused else scene.state
    parts = [state]
    if scene.steps.per_s is not None:
        parts.append(f"{scene.steps.count:,} {scene.steps.unit}, {format_seconds(scene.steps.p50_s)}")
    right = " · ".join([*parts, format_seconds(scene.elapsed)])
    title = shorten(scene.title, max(16, columns - len(right) - 9))
    fill = max(1, columns - len(title) - len(right) - 8)
    return Text(f"── {title} {'─' * fill} {right} ──", style="dim")


def _foot(scene: Scene, columns: int) -> Text:
    keys = f" space {'go on' if scene.paused else 'pause'}  ? help  q {scene.leaves}"
    for names in (VIEWS, _SHORT, ("",) * len(VIEWS)):
        text = Text()
        for number, name in enumerate(names, 1):
            chosen = number == scene.view and not scene.help
            text.append(f" {number} {name} ".replace("  ", " "), "reverse" if chosen else "")
        text.append(keys)
        if text.cell_len <= columns:
            break
    return text


def _body(scene: Scene, rows: int, columns: int) -> list[Text]:
    if scene.help:
        return [Text(f" {line}") for line in HELP][:rows]
    frame = scene.frame
    size = (rows, columns)
    if scene.view == 6:
        started_ns = int(scene.started * 1e9)
        events = event_rows(scene.processes, scene.notices, started_ns)
        return rank_view_lines(scene.processes, events, started_ns, size)
    if frame is None:
        return [Text(" no GPU memory call yet")]
    if scene.view == 2:
        return timeline_lines(frame, scene.points, scene.elapsed, size)
    if scene.view == 3:
        return fragmentation_lines(frame, scene.points, size)
    if scene.view == 4:
        return stitching_lines(frame, scene.elapsed, scene.budget, size)
    if scene.view == 5:
        return map_view_lines(frame, size, scene.colours)
    return overview_lines(frame, scene.processes, scene.points, scene.elapsed, size)
