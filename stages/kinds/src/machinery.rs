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
    number: 1,
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
