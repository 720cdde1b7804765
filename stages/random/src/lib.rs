//! Counter-based random streams: draws depend on seed and stream name alone
