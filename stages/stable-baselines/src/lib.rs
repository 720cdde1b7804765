//! Reads Stable-Baselines3 archives without executing anything in them
