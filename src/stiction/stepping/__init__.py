"""How time passes: steps, and simulations made of them."""

from stiction.stepping.event_driven import EventDriven
from stiction.stepping.simulation import Simulation
from stiction.stepping.step import step, step1, step2
from stiction.stepping.time_stepping import TimeStepping

__all__ = ["EventDriven", "Simulation", "TimeStepping", "step", "step1", "step2"]
