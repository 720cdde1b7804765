//! Artifacts as Arrow tables and deterministic Parquet; content digests; schema names and units
