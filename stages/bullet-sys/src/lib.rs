//! C++ shim over Bullet's multi-body dynamics
