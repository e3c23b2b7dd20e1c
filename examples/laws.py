"""Five blocks, pushed and pulled, under every law of contact: who solved it, how well, and how fast."""

from __future__ import annotations

import timeit
from dataclasses import fields

import stiction as st
from stiction.problems.zoo.contact_families import stack

LAWS: tuple[st.Coulomb | st.NoSlip | st.Viscous | st.Frictionless | st.BoxFriction, ...] = (
    st.Coulomb(), st.Coulomb(facets=8), st.Coulomb(facets=4), st.BoxFriction(scaled=True),
    st.NoSlip(), st.Viscous(implicit=True), st.Frictionless(),
)  # fmt: skip


def main() -> None:
    problem = stack(5, seed=3)
    print(f"Five blocks, {problem.n} contacts. Residuals are judged from problem and answer; 1e-8 is solved.\n")
    print(f"  {'law':<28}{'solver':<16}{'residual':>9}{'from the cone':>15}{'sliding':>9}{'time':>12}")
    for law in LAWS:
        row(problem.with_law(law))
    print(f"\nOn the cone {st.solve(problem).uniqueness()}.")


def row(problem: st.ContactProblem) -> None:
    """Solve, and print a line; the time is the best of many, the first of which is that of the compiler."""
    solution = st.solve(problem)
    microseconds = 1e6 * min(timeit.repeat(lambda: st.solve(problem), number=1, repeat=50))
    certificate, sliding = solution.certificate, int((solution.mode == st.Mode.SLIDE).sum())
    changed = {each.name: getattr(problem.law, each.name) for each in fields(problem.law)}
    defaults = {each.name: each.default for each in fields(problem.law)}
    options = ", ".join(f"{name}={value}" for name, value in changed.items() if value != defaults[name])
    law = f"{type(problem.law).__name__}({options})"
    beyond = f"{certificate.beyond_cone:.0e}" if isinstance(problem.law, (st.Coulomb, st.BoxFriction)) else "–"
    print(
        f"  {law:<28}{type(solution.solver).__name__:<16}{certificate.residual:>9.0e}"
        f"{beyond:>15}{sliding:>9}{microseconds:>9.0f} µs"
    )


if __name__ == "__main__":
    main()
