"""How long the page takes in a Chromium until people see something, and how many frames a second a slider shows them."""

import contextlib
import statistics

import numpy
import zarr

import browser
import processes
import table

ROUNDS = 5
TIMES, SIDE = 60, 512
SHOWN = ["wait", "canvas[data-ready]"]
DRAG_SECONDS = 4
MBIT = 20

PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FIRST = """
new Promise((resolve) => new PerformanceObserver((list) => {
  const picture = list.getEntries().at(-1).startTime;
  const text = performance.getEntriesByName('first-contentful-paint')[0].startTime;
  const resources = performance.getEntriesByType('resource');
  const waited = resources.filter((one) => one.renderBlockingStatus === 'blocking' || one.initiatorType === 'img');
  const begun = resources.filter((one) => one.startTime < picture);
  resolve({ text, picture, waited: waited.filter((one) => begun.includes(one)).length + 1, begun: begun.length + 1 });
}).observe({ type: 'largest-contentful-paint', buffered: true }))
"""
"""When the page was painted first and when its picture was; the requests that the picture waits for, and all that were begun until
then, the page itself among them."""

DRAG = f"""
new Promise((resolve) => {{
  const slider = document.querySelector('#dim-0'), draw = CanvasRenderingContext2D.prototype.putImageData;
  let drawn = 0, at = 0;
  CanvasRenderingContext2D.prototype.putImageData = function (...all) {{
    // The legend is drawn too.
    if (this.canvas.height > 1) drawn += 1;
    return draw.apply(this, all);
  }};
  const began = performance.now();
  const step = () => {{
    const seconds = (performance.now() - began) / 1000;
    if (seconds > {DRAG_SECONDS}) {{
      CanvasRenderingContext2D.prototype.putImageData = draw;
      return resolve(drawn / seconds);
    }}
    at += 1;
    slider.value = String(at % (Number(slider.max) + 1));
    slider.dispatchEvent(new Event('input', {{ bubbles: true }}));
    requestAnimationFrame(step);
  }};
  step();
}})
"""
"""The frames a second that are drawn while a slider is moved with each frame of the screen."""

COLOURS = """
new Promise((resolve) => {
  const chosen = document.querySelector('#colormap'), draw = CanvasRenderingContext2D.prototype.putImageData, each = [];
  const names = ['magma', 'viridis', 'inferno', 'plasma', 'cividis', 'magma', 'viridis', 'inferno', 'plasma'];
  const next = () => {
    const name = names[each.length];
    if (!name) { CanvasRenderingContext2D.prototype.putImageData = draw; return resolve(each); }
    const began = performance.now();
    CanvasRenderingContext2D.prototype.putImageData = function (...all) {
      const drawn = draw.apply(this, all);
      if (this.canvas.height === 1) return drawn;
      each.push(performance.now() - began);
      requestAnimationFrame(next);
      return drawn;
    };
    chosen.value = name;
    chosen.dispatchEvent(new Event('change', { bubbles: true }));
  };
  next();
})
"""
"""The milliseconds until the picture is drawn in other colours, several times."""


@contextlib.contextmanager
def visitor(scratch):
    """Visits a page and takes steps on it; what the steps returned."""
    folder = scratch / "view"
    browser.programs(folder)
    with browser.asking(folder / "view.mjs") as ask:
        yield lambda url, *steps, plain=False: ask(url=url, steps=steps, plain=plain)["values"]


def make(folder):
    """Planes that no compression makes much shorter."""
    rng = numpy.random.default_rng(1)
    smooth = 280 + 20 * numpy.cos(numpy.linspace(-1.5, 1.5, SIDE))
    planes = smooth[:, None] + rng.normal(0, 0.5, (TIMES, SIDE, SIDE))
    zarr.create_array(folder / "planes", data=planes.astype("float32"), chunks=(1, SIDE, SIDE), dimension_names=("time", "y", "x"))


def of_people(_, scratch):
    """What people see of the page, and when."""
    folder = scratch / "page"
    make(folder)
    with processes.zarrd(folder, scratch / "page.log") as server, visitor(scratch) as visit:
        url = f"{server.base}/view/bench/planes"
        # What the browser alone takes.
        least = [visit(f"{server.base}/healthz", ["evaluate", PAINTED], plain=True)[0] for _ in range(ROUNDS)]
        first = [visit(url, ["evaluate", FIRST])[0] for _ in range(ROUNDS)]
        frames = [visit(url, SHOWN, ["evaluate", DRAG])[-1] for _ in range(ROUNDS)]
        slow = [visit(url, SHOWN, ["throttle", MBIT * 1_000_000 / 8], ["evaluate", DRAG])[-1] for _ in range(ROUNDS)]
        colours = [each for _ in range(ROUNDS) for each in visit(url, SHOWN, ["evaluate", COLOURS])[-1]]

    def median(name):
        return statistics.median(one[name] for one in first)

    rows = [
        ["first paint", f"{median('text'):.0f} ms", "≤ 100 ms"],
        ["first paint of a word alone", f"{statistics.median(least):.0f} ms", ""],
        ["with its picture", f"{median('picture'):.0f} ms", "≤ 300 ms"],
        ["requests that the picture waits for", f"{max(one['waited'] for one in first)}", "≤ 6"],
        ["requests begun until then", f"{max(one['begun'] for one in first)}", ""],
        [f"slider over planes of {SIDE} × {SIDE} float32", f"{statistics.median(frames):.0f} frames a second", "≥ 30"],
        [f"the same over {MBIT} Mbit/s", f"{statistics.median(slow):.0f} frames a second", "≥ 10"],
        ["other colours", f"{statistics.median(colours):.1f} ms, {max(colours):.1f} ms at most", "< 16 ms"],
    ]
    table.show("The page in a Chromium that draws with the processor", ["", "", "budget"], rows)
