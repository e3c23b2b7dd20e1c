"""Pictures of a run, of a comparison and of a problem, with Matplotlib.

Lines never differ by colour alone. Rounding is not drawn as if it were a result: differences below
1e-12 of the scale become a flat line, and axes have no offsets and never zoom into rounding.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.disk import written_whole
from stiction.errors import InvalidProblem, is_number
from stiction.optional import matplotlib
from stiction.solutions.contact import Mode
from stiction.viewer.palette import SLIDE, STICK, THEMES, hexed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.solutions.contact import ContactSolution
    from stiction.stepping.log_files import Record
    from stiction.viewer.compare import Comparison
    from stiction.viewer.palette import Theme

SUFFIXES = (".svg", ".png", ".pdf")
PAIRS = 5  # of geoms that are drawn one by one, those with the largest forces
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 3)))
MARKERS = "osv^DPX"
ROUNDING = 1e-12  # of the scale: what differs by less is the same
SPAN = 0.04  # of the scale: the least that an axis shows
MARKED = 0.012  # of the whole time: the shortest piece of a mode that is still seen
WIDE = 400  # rows beyond which a matrix is drawn coarser
SPIKE = 20.0  # times what is usual: forces of impacts
PALE = "#fdf1d8"  # the inside of a friction cone
SCREEN = 2000  # points of a line; more are not seen


def check() -> None:
    """Raise if Matplotlib is missing."""
    matplotlib()


def save(figure: Any, path: Path) -> None:
    """Write a figure; the file is there as a whole or not at all."""
    with written_whole(path, "plot") as part:
        figure.savefig(part, dpi=150)


# Looks


def blank(wide: float, high: float, theme: str = "light") -> tuple[Any, Theme]:
    """A figure on light or dark paper."""
    if theme not in THEMES:
        raise InvalidProblem(f"plot: theme must be one of {', '.join(THEMES)}, got {theme!r}")
    chosen = THEMES[theme]
    return matplotlib().figure.Figure(figsize=(wide, high), layout="constrained", facecolor=chosen.paper), chosen


def ink(ax: Any, theme: Theme) -> None:
    """Axes, ticks and words in the ink of the theme, numbers written out."""
    ax.set_facecolor(theme.paper)
    ax.tick_params(colors=theme.ink, which="both", labelsize=8)
    for spine in ax.spines.values():
        spine.set_color(theme.ink)
    ax.spines[["top", "right"]].set_visible(False)
    for words in (ax.xaxis.label, ax.yaxis.label, ax.title):
        words.set_color(theme.ink)
    ax.grid(color=theme.faint, lw=0.6)
    ax.set_axisbelow(True)
    formatter = ax.yaxis.get_major_formatter()
    if hasattr(formatter, "set_useOffset"):
        formatter.set_useOffset(False)
    if (legend := ax.get_legend()) is not None:
        legend.get_frame().set(facecolor=theme.paper, edgecolor=theme.faint)
        for text in legend.get_texts():
            text.set_color(theme.ink)


def flat(values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Values without their rounding: all the same where they differ by less than 1e-12 of the scale."""
    values = np.asarray(values, float)
    if values.size and np.isfinite(values).all() and np.ptp(values) <= ROUNDING * scale:
        middle = float(np.median(values))
        return np.full(values.shape, 0.0 if abs(middle) <= ROUNDING * scale else middle)
    return np.where(np.abs(values) <= ROUNDING * scale, 0.0, values)


def widen(ax: Any, scale: float) -> None:
    """An axis shows at least a part of the scale, so that nothing small looks large."""
    low, high = ax.get_ylim()
    least = SPAN * scale if scale > 0.0 else 1.0
    if high - low < least:
        middle = 0.5 * (low + high)
        ax.set_ylim(middle - 0.5 * least, middle + 0.5 * least)


def say_zero(ax: Any, shown: NDArray[np.float64], theme: Theme) -> None:
    """A note where nothing but rounding was left to draw."""
    if not shown.any():
        ax.set_ylim(-1.0, 1.0)
        ax.set_yticks([0.0])
        ax.annotate("zero but for rounding", (0.99, 0.85), xycoords="axes fraction", ha="right", va="center",
                    fontsize=8, color=theme.ink)  # fmt: skip


def prefix_of(size: float) -> tuple[str, float]:
    """The prefix in which a quantity of this size is a handy number."""
    known = (("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9))
    return next(((prefix, unit) for prefix, unit in known if size >= 0.5 * unit), ("", 1.0))


def scale_of(*values: NDArray[np.float64]) -> float:
    return max((float(np.abs(each).max(initial=0.0)) for each in values), default=0.0)


# A run


def history(record: Record, theme: str = "light") -> Any:
    """Contact force and mode, slip, gap, energy, residual and wall time of the steps against time."""
    if not record.steps:
        raise InvalidProblem("plot: no step was made, so there is nothing to draw")
    figure, paper = blank(9.0, 12.0, theme)
    law = record.law.replace("(facets=None, rotation=0.0)", "")  # the circular cone
    title = f"{record.scene.rstrip('.')}\n{law.removesuffix('()')} law, time step {record.timestep:g} s"
    figure.suptitle(title, fontsize=11, color=paper.ink)
    pairs, normal, friction, mode = by_pair(record)
    heights = (2.0, 1.4, 0.35 + 0.22 * max(1, len(pairs)), 1.2, 1.2, 1.4, 1.2, 1.2)
    first, second, *axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    strength = scale_of(normal, friction)
    draw_forces(first, record, pairs, normal, "normal force\nof a pair [N]", paper, strength)
    draw_forces(second, record, pairs, friction, "friction\nof a pair [N]", paper, strength)
    first.legend(fontsize=8, ncols=2) if pairs else first.set_title("no contacts", fontsize=8)
    draw_modes(axes[0], record, pairs, mode, paper)
    thin = slice(None, None, max(1, record.steps // SCREEN))
    t = record.time[thin]
    # Speeds and lengths of everyday scenes are a metre (a second) or less: that is their scale here.
    for ax, values, label, unit in (
        (axes[1], np.maximum.reduceat(record.slip, starts(record, thin)), "largest\nslip", "m/s"),
        (axes[2], np.minimum.reduceat(record.gap, starts(record, thin)), "smallest\ngap", "m"),
    ):
        shown = flat(values, max(1.0, scale_of(values)))
        prefix, size = prefix_of(scale_of(shown))
        ax.plot(t, shown / size, color=paper.lines[0], lw=1.2)
        ax.set_ylabel(f"{label} [{prefix}{unit}]")
        say_zero(ax, shown, paper)
    axes[2].axhline(0.0, color=paper.faint, lw=0.8)
    parts = {"sum": record.potential + record.kinetic, "potential": record.potential, "kinetic": record.kinetic}
    size = max(scale_of(*parts.values()), strength)  # what these forces would do over a metre
    shown = np.array([flat(values[thin], size) for values in parts.values()])
    for k, (name, dash) in enumerate(zip(parts, ("-", "--", ":"), strict=True)):
        axes[3].plot(t, shown[k], dash, color=paper.lines[k], lw=1.5, label=name)
    widen(axes[3], scale_of(shown))
    say_zero(axes[3], shown, paper)
    axes[3].set_ylabel("energy [J]")
    axes[3].legend(fontsize=8, ncols=3)
    worst = np.maximum.reduceat(record.residual, starts(record, thin))
    axes[4].semilogy(t, np.maximum(worst, ROUNDING), ".", color=paper.lines[0], ms=2.5)
    floor_at(ROUNDING, axes[4], paper)
    axes[4].axhline(1e-8, color=paper.lines[2], lw=1.0, ls="--")
    axes[4].annotate("called solved below this", (t[0], 1e-8), (2, -9), textcoords="offset points", fontsize=7,
                     color=paper.ink)  # fmt: skip
    axes[4].set_ylim(0.1 * ROUNDING, max(1e-6, 10.0 * float(worst.max())))
    axes[4].set_ylabel("residual [1]")
    slowest = np.maximum.reduceat(record.seconds, starts(record, thin))
    axes[5].semilogy(t, 1e3 * slowest, ".", color=paper.lines[0], ms=2.5)
    axes[5].set_ylabel("wall time of\na step [ms]")
    axes[5].set_xlabel("time [s]")
    for ax in (first, second, *axes):
        ink(ax, paper)
    figure.align_ylabels([first, second, *axes[1:]])
    return figure


# A comparison


def compared(comparison: Comparison, theme: str = "light") -> Any:
    """How far bodies have moved, how fast contacts slip, and the residual, of each engine against time."""
    if not any(comparison.history):
        raise InvalidProblem("plot: no step was made, so there is nothing to draw")
    figure, paper = blank(7.5, 7.0, theme)
    scene = comparison.runs[0].scene
    figure.suptitle((scene.description or "scene").rstrip("."), fontsize=11, color=paper.ink)
    axes = figure.subplots(3, 1, sharex=True)
    wanted = (("moved", "furthest moved [m]"), ("slip", "largest slip [m/s]"), ("residual", "residual [1]"))
    for k, (run, kept) in enumerate(zip(comparison.runs, comparison.history, strict=True)):
        t = np.array([each.time for each in kept])
        for ax, (name, _) in zip(axes, wanted, strict=True):
            values = np.array([getattr(each, name) for each in kept])
            style = line_style(k, len(t), paper)
            ax.semilogy(t, np.maximum(values, ROUNDING), label=run.engine_words, **style)
    for ax, (_, label) in zip(axes, wanted, strict=True):
        ax.set_ylabel(label)
        floor_at(ROUNDING, ax, paper)
        low, high = ax.get_ylim()
        ax.set_ylim(low / 3.0, 3.0 * high)
    axes[-1].set_xlabel("time [s]")
    names_below(figure, axes[0], paper)
    for ax in axes:
        ink(ax, paper)
    figure.align_ylabels(axes)
    return figure


def floor_at(level: float, ax: Any, paper: Theme) -> None:
    """The line below which numbers are rounding, and its label."""
    ax.axhline(level, color=paper.faint, lw=1.0)
    ax.annotate("rounding, and below", (0.99, level), (0, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", fontsize=7, color=paper.ink)  # fmt: skip


def names_below(figure: Any, ax: Any, paper: Theme) -> None:
    """The names of lines below the figure, where they hide none."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9,
                  labelcolor=paper.ink, facecolor=paper.paper, edgecolor=paper.faint)  # fmt: skip


def curves(
    times: NDArray[np.float64], values: Mapping[str, NDArray[np.float64]], title: str, across: str, up: str,
    floor: float, theme: str = "light",
) -> Any:  # fmt: skip
    """Named curves on a logarithmic axis; values below the floor are drawn on it."""
    figure, paper = blank(7.0, 5.0, theme)
    ax = figure.subplots()
    for k, (name, curve) in enumerate(values.items()):
        ax.semilogy(times, np.maximum(curve, floor), label=name, **line_style(k, len(times), paper))
    high = max((float(curve.max(initial=floor)) for curve in values.values()), default=floor)
    ax.set(xlabel=across, ylabel=up, ylim=(0.1 * floor, 10.0 * high))
    ax.set_title(title, fontsize=10)
    floor_at(floor, ax, paper)
    names_below(figure, ax, paper)
    ink(ax, paper)
    return figure


# A sweep


def swept(
    parameters: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[Any]], labels: Mapping[str, str],
    theme: str = "light",
) -> Any:  # fmt: skip
    """Measures against one parameter, as lines, or against two, as heat maps; gaps where there is no value."""
    figure, paper = blank(7.0, 2.6 * len(measured) + 0.6, theme)
    axes = figure.subplots(len(measured), 1, squeeze=False)[:, 0]
    names = list(parameters)
    places = [ticks(parameters[name]) for name in names]
    for k, (ax, (name, values)) in enumerate(zip(axes, measured.items(), strict=True)):
        found = np.array([math.nan if value is None else float(value) for value in values])
        if len(names) == 1:
            at, words = places[0]
            order = np.argsort(at, kind="stable")
            ax.plot(at[order], found[order], color=paper.lines[k % len(paper.lines)], lw=1.6, marker="o", ms=4)
            ax.set_ylabel(labels[name])
            if words is not None:
                ax.set_xticks(range(len(words)), words)
        else:
            draw_map(figure, ax, places, found, labels[name], paper)
            ax.set_ylabel(names[1])
        if k == len(measured) - 1:
            ax.set_xlabel(names[0])
        ink(ax, paper)
        if len(names) > 1:
            ax.grid(visible=False)
    return figure


def ticks(values: Sequence[Any]) -> tuple[NDArray[np.float64], list[str] | None]:
    """Where values stand on an axis; words, if they are no numbers, in the order in which they first appear."""
    if all(map(is_number, values)):
        return np.array(values, float), None
    words = list(dict.fromkeys(map(str, values)))
    return np.array([words.index(str(value)) for value in values], float), words


def draw_map(
    figure: Any, ax: Any, places: list[tuple[NDArray[np.float64], list[str] | None]], found: NDArray[np.float64],
    label: str, theme: Theme,
) -> None:  # fmt: skip
    """Cells of colour, each as wide as all others: the axes show the values, not their distances."""
    (across, column), (up, row) = (np.unique(place, return_inverse=True) for place, _ in places)
    cells = np.full((len(up), len(across)), math.nan)
    cells[row, column] = found
    shown = ax.imshow(cells, origin="lower", aspect="auto", cmap="viridis", interpolation="nearest")
    for set_ticks, place, words in ((ax.set_xticks, across, places[0][1]), (ax.set_yticks, up, places[1][1])):
        every = max(1, math.ceil(len(place) / 10))
        names = [f"{value:.3g}" for value in place] if words is None else words
        set_ticks(range(0, len(place), every), names[::every])
    bar = figure.colorbar(shown, ax=ax, label=label)
    bar.ax.tick_params(colors=theme.ink, labelsize=8)
    bar.ax.yaxis.label.set_color(theme.ink)


def line_style(k: int, count: int, theme: Theme) -> dict[str, Any]:
    """Colour, dashes and markers of the k-th of several lines of so many points."""
    every = max(1, count // 7)
    return {
        "color": theme.lines[k % len(theme.lines)], "ls": DASHES[k % len(DASHES)], "lw": 1.6,
        "marker": MARKERS[k % len(MARKERS)], "markevery": ((k * every // 3) % max(count, 1), every), "ms": 4.5,
        "mfc": theme.paper,
    }  # fmt: skip


def starts(record: Record, thin: slice) -> NDArray[np.int64]:
    return np.arange(record.steps)[thin]


def by_pair(
    record: Record,
) -> tuple[list[tuple[int, int]], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Pairs of geoms, the strongest first; (pairs, steps) normal force, friction, and mode: slide if one slides.

    Forces of a pair are sums over its contacts, of friction the sum of sizes.
    """
    low = record.contact_geom.min(axis=1, initial=np.iinfo(np.int32).max).astype(np.int64)
    high = record.contact_geom.max(axis=1, initial=0).astype(np.int64)
    count = len(record.geoms)
    keys, which = np.unique(low * count + high, return_inverse=True)
    normal, friction, mode = (np.zeros((len(keys), record.steps), kind) for kind in (float, float, np.int64))
    step = record.step_of_contact
    np.add.at(normal, (which, step), record.contact_force[:, 0])
    np.add.at(friction, (which, step), np.hypot(record.contact_force[:, 1], record.contact_force[:, 2]))
    np.maximum.at(mode, (which, step), record.contact_mode)
    order = np.argsort(-normal.max(axis=1, initial=0.0), kind="stable")[:PAIRS]
    pairs = [(int(keys[k]) // count, int(keys[k]) % count) for k in order]
    return pairs, normal[order], friction[order], mode[order]


def named(record: Record, pair: tuple[int, int]) -> str:
    return f"{record.geoms[pair[0]]} – {record.geoms[pair[1]]}"


def draw_forces(
    ax: Any, record: Record, pairs: list[tuple[int, int]], force: NDArray[np.float64], label: str, theme: Theme,
    scale: float,
) -> None:  # fmt: skip
    """A line for each pair; where impacts would dwarf the rest, the scale is logarithmic above what is usual."""
    every = max(1, record.steps // SCREEN)
    t, begins = record.time[::every], np.arange(0, record.steps, every)
    for k, pair in enumerate(pairs):
        values = flat(np.maximum.reduceat(force[k], begins), scale)
        style = line_style(k, len(t), theme) | {"markevery": (k * len(t) // 40, max(1, len(t) // 8))}
        ax.plot(t, values, label=named(record, pair), **style)
    there = force[force > ROUNDING * scale]
    if there.size and force.max() > SPIKE * (usual := float(np.quantile(there, 0.9))):
        ax.set_yscale("symlog", linthresh=usual)
    else:
        widen(ax, scale)
    ax.set_ylabel(label)


def draw_modes(ax: Any, record: Record, pairs: list[tuple[int, int]], mode: NDArray[np.int64], theme: Theme) -> None:
    """A strip for each pair: full where it sticks, hatched where it slides, nothing where it is open."""
    looks: Any = {Mode.STICK: {"facecolor": hexed(STICK)}, Mode.SLIDE: {"facecolor": hexed(SLIDE), "hatch": "//////"}}
    end = np.append(record.time - record.timestep, record.time[-1])  # where steps begin, and the last ends
    least = MARKED * max(end[-1] - end[0], record.timestep)
    for k in range(len(pairs)):
        changes = np.flatnonzero(np.diff(mode[k])) + 1
        bounds = [0, *changes.tolist(), record.steps]
        for a, b in pairwise(bounds):
            if (kind := Mode(mode[k, a])) != Mode.OPEN:
                width = max(end[b] - end[a], least if b - a < record.steps else 0.0)
                ax.broken_barh(
                    [(end[a], width)], (k - 0.35, 0.7), edgecolor="black", lw=0.3, **looks[min(kind, Mode.SLIDE)]
                )
    ax.set_yticks(range(len(pairs)), [named(record, pair) for pair in pairs], fontsize=7)
    ax.set_ylim(max(1, len(pairs)) - 0.5, -0.5)
    ax.set_title("blue: sticks    orange, hatched: slides    blank: open", fontsize=8)


# A problem


def problem(solution: ContactSolution, contact: int | None = None) -> Any:
    """The sparsity of a problem and the friction cone of one contact, by default that with the largest impulse."""
    posed = solution.require_problem()
    if not posed.n:
        raise InvalidProblem("plot: the problem has no contacts, so there is nothing to draw")
    chosen = int(np.argmax(np.abs(solution.impulse).max(axis=1))) if contact is None else contact
    figure = matplotlib().figure.Figure(figsize=(9.0, 8.4), layout="constrained")
    above, below = figure.subfigures(2, 1)
    draw_sparsity(above, posed)
    draw_cone(below, solution, chosen)
    return figure


def sparsity(posed: ContactProblem) -> Any:
    """Where the rows of the contacts and the Delassus matrix have entries."""
    figure = matplotlib().figure.Figure(figsize=(9.0, 4.2), layout="constrained")
    draw_sparsity(figure, posed)
    return figure


def cone(solution: ContactSolution, contact: int) -> Any:
    """The friction cone of one contact, with its impulse and its sliding velocity."""
    figure = matplotlib().figure.Figure(figsize=(9.0, 4.2), layout="constrained")
    draw_cone(figure, solution, contact)
    return figure


def draw_sparsity(figure: Any, posed: ContactProblem) -> None:
    n = posed.n
    if posed.mass is None:
        ax = figure.subplots()
        assert posed.delassus is not None
        W = posed.delassus
    else:
        left, ax = figure.subplots(1, 2)
        rows = posed.dense_rows().reshape(3 * n, posed.m)
        show(left, np.concatenate([rows, posed.joints]))
        left.set_title(f"rows: {n} contacts, {len(posed.joints)} bilateral", fontsize=9)
        left.set_xlabel("velocity")
        left.set_ylabel("row")
        white = posed.whitened
        from stiction.problems.contact import densified

        dense = densified(white.rows, white.segments, len(white.free)).reshape(3 * n, -1)
        W = dense @ dense.T
    size = np.sqrt(np.outer(np.abs(np.diag(W)), np.abs(np.diag(W))))
    filled = show(ax, np.where(np.abs(W) > 1e-12 * size, W, 0.0))
    ax.set_aspect("equal")
    ax.set_title(f"Delassus matrix: {100.0 * filled:.0f} % filled", fontsize=9)
    ax.set_xlabel("row of a contact")
    ax.set_ylabel("row of a contact")


def show(ax: Any, matrix: NDArray[np.float64]) -> float:
    """Black where a matrix has entries, coarser if it is large; the part of it that has."""
    there = matrix != 0.0
    filled = float(there.mean()) if there.size else 0.0
    step = [max(1, math.ceil(length / WIDE)) for length in there.shape]
    coarse = np.zeros([math.ceil(a / s) for a, s in zip(there.shape, step, strict=True)], bool)
    for i in range(step[0]):
        for j in range(step[1]):
            part = there[i :: step[0], j :: step[1]]
            coarse[: part.shape[0], : part.shape[1]] |= part
    extent = (-0.5, there.shape[1] - 0.5, there.shape[0] - 0.5, -0.5)
    ax.imshow(coarse, cmap="Greys", vmin=0, vmax=1, interpolation="nearest", extent=extent, aspect="auto")
    return filled


def draw_cone(figure: Any, solution: ContactSolution, contact: int) -> None:
    posed = solution.require_problem()
    p, u = solution.impulse[contact], solution.contact_velocity[contact]
    mu, friction, slide = float(posed.friction[contact]), math.hypot(p[1], p[2]), math.hypot(u[1], u[2])
    bound = mu * max(float(p[0]), 0.0)
    mode = Mode(solution.mode[contact]).name.lower()
    side, top = figure.subplots(1, 2)
    high = 1.25 * float(p[0]) if p[0] > 0.0 else 1.0
    wide = max(mu * high, 1.1 * friction)
    side.fill_between([-mu * high, 0.0, mu * high], [high, 0.0, high], high, color=PALE)
    side.plot([-mu * high, 0.0, mu * high], [high, 0.0, high], color="black", lw=1.0)
    side.annotate(
        "", (friction, float(p[0])), (0.0, 0.0), arrowprops={"arrowstyle": "-|>", "lw": 1.8, "color": hexed(STICK)}
    )
    side.plot([friction], [float(p[0])], "o", color=hexed(STICK), ms=4)
    side.set_xlim(-1.05 * wide or -1.0, 1.05 * wide or 1.0)
    side.set_ylim(0.0, high)
    side.set_xlabel("friction [N s]")
    side.set_ylabel("normal impulse [N s]")
    side.set_title(f"contact {contact}: {mode}, friction coefficient {mu:g}", fontsize=9)
    outline = section(posed, bound)
    top.fill(outline[:, 0], outline[:, 1], fc=PALE, ec="black", lw=1.0)
    arrow(top, p[1], p[2], "-", "friction [N s]", hexed(STICK))
    reach = 1.4 * max(bound, friction)
    if slide > 1e-9 * solution.certificate.scale and reach > 0.0:
        across = 0.75 * reach / slide * u[1:]
        arrow(top, across[0], across[1], "--", f"sliding, {slide:.3g} m/s (direction)", hexed(SLIDE))
    top.set_xlim(-reach or -1.0, reach or 1.0)
    top.set_ylim(-reach or -1.0, reach or 1.0)
    top.set_aspect("equal")
    top.set_xlabel("tangent 1 [N s]")
    top.set_ylabel("tangent 2 [N s]")
    top.set_title(f"{type(posed.law).__name__}: what friction may be at this normal impulse", fontsize=9)
    if reach > 0.0:
        top.legend(fontsize=8, loc="upper right")
    else:
        top.text(0.5, 0.5, "no impulse, no friction", transform=top.transAxes, ha="center", va="center")


def arrow(ax: Any, x: float, y: float, dash: str, label: str, colour: str) -> None:
    ax.annotate("", (x, y), (0.0, 0.0), arrowprops={"arrowstyle": "-|>", "lw": 1.6, "ls": dash, "color": colour})
    ax.plot([], [], dash, color=colour, lw=1.6, label=label)


def section(posed: ContactProblem, bound: float) -> NDArray[np.float64]:
    """The outline of the impulses that friction may have: a disc, a polygon, a box."""
    return bound * posed.law.outline(posed.dim)
