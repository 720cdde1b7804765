//! Execution of `expert`: policies from the simulator.
