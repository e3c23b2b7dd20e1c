"""How thin may an arch be? Stones without mortar stand by thrust alone, down to a thickness that theory knows.

A semicircular arch falls when no line of thrust fits inside it any more: for many stones at 0.107 of its mean radius
(Heyman 1969). One step is enough to ask: at the limit and above it, forces exist that hold every stone at rest.
"""

from __future__ import annotations

import numpy as np

import stiction as st

RADIUS, STONES = 2.5, 21


def stands(thickness: float) -> bool:
    """Whether contact forces hold all stones at rest from here on."""
    sim = st.Simulation(st.Scene.named("masonry-arch", stones=STONES, thickness=thickness))
    for _ in range(5):
        sim.step()
    return bool(np.abs(sim.data.qvel).max() < 1e-9)


def main() -> None:
    falls, holds = 0.2, 0.5
    for _ in range(10):
        middle = 0.5 * (falls + holds)
        if stands(middle):
            holds = middle
        else:
            falls = middle
        print(f"  between {falls / RADIUS:.4f} and {holds / RADIUS:.4f} of the radius")
    print(f"\n{STONES} stones stand down to {holds / RADIUS:.4f} of the radius; theory says 0.107 for many.")


if __name__ == "__main__":
    main()
