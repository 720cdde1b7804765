//! Vectors of space, m.

pub(crate) type Vector = [f64; 3];

pub(crate) fn plus(left: Vector, right: Vector) -> Vector {
    std::array::from_fn(|axis| left[axis] + right[axis])
}

pub(crate) fn minus(left: Vector, right: Vector) -> Vector {
    std::array::from_fn(|axis| left[axis] - right[axis])
}

pub(crate) fn times(factor: f64, vector: Vector) -> Vector {
    vector.map(|component| factor * component)
}

pub(crate) fn dot(left: Vector, right: Vector) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

pub(crate) fn cross(left: Vector, right: Vector) -> Vector {
    [
        left[1] * right[2] - left[2] * right[1],
        left[2] * right[0] - left[0] * right[2],
        left[0] * right[1] - left[1] * right[0],
    ]
}

pub(crate) fn length(vector: Vector) -> f64 {
    dot(vector, vector).sqrt()
}

/// The vector of length 1 in that direction; the vector is not zero.
pub(crate) fn unit(vector: Vector) -> Vector {
    times(1.0 / length(vector), vector)
}

/// The point at a share of the way from one to another.
pub(crate) fn between(from: Vector, to: Vector, share: f64) -> Vector {
    plus(from, times(share, minus(to, from)))
}
