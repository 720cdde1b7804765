//! Identity of a build: a hash of the sources it was made from
