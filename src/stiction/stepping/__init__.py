"""How time passes: steps, and simulations made of them."""

from stiction.stepping.event_driven import EventDriven
from stiction.stepping.first_order import FirstOrder
from stiction.stepping.simulation import Simulation
from stiction.stepping.step import step, step1, step2
from stiction.stepping.time_stepping import TimeStepping

__all__ = ["EventDriven", "FirstOrder", "Simulation", "TimeStepping", "step", "step1", "step2"]
