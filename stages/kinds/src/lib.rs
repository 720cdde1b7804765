//! Declarations of the built-in kinds: all that the command knows of them
