use provenir_random::Stream;

/// The seed of an episode by its number, of those that policies are judged by: the same for every policy.
pub fn trial_seed(seed: u64, trial: u32) -> u64 {
    Stream::new(seed, "trials").at(u64::from(trial))
}
