//! Revisions of the machinery that several kinds use.

use provenir_api::Revision;

/// Simulation: robots, tasks, rewards, random initial states.
pub(crate) const SIM: Revision = Revision {
    part: "sim",
    number: 1,
};

/// Training on LibTorch: initialisation, losses, optimiser.
pub(crate) const NN: Revision = Revision {
    part: "nn",
    // 2: a step of the optimiser on a processor is one pass of our own, which changes roundings.
    number: 2,
};

/// Policies: tensors, standardisation, inference.
pub(crate) const POLICY: Revision = Revision {
    part: "policy",
    number: 1,
};

/// Random streams.
pub(crate) const RANDOM: Revision = Revision {
    part: "random",
    number: 1,
};

/// Tables: schema names, content digests.
pub(crate) const TABLE: Revision = Revision {
    part: "table",
    number: 1,
};
