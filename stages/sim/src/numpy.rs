//! Sums and means with `NumPy`'s roundings, and the angles PyBullet reads from a quaternion.

use std::ops::{Add, Div};

/// The mean as `NumPy` computes it in the type of its elements: pairwise sums with eight accumulators.
///
/// `pairwise_sum` in `NumPy`'s `loops_utils.h.src`; below eight elements it adds in order.
pub(crate) fn mean<T: Real>(values: &[T]) -> T {
    pairwise_sum(values) / T::count(values.len())
}

pub(crate) trait Real: Copy + Default + Add<Output = Self> + Div<Output = Self> {
    fn count(n: usize) -> Self;
}

impl Real for f32 {
    fn count(n: usize) -> Self {
        n as Self
    }
}

impl Real for f64 {
    fn count(n: usize) -> Self {
        n as Self
    }
}

fn pairwise_sum<T: Real>(values: &[T]) -> T {
    const BLOCK: usize = 128;
    let n = values.len();
    if n > BLOCK {
        let half = n / 2 - n / 2 % 8;
        return pairwise_sum(&values[..half]) + pairwise_sum(&values[half..]);
    }
    let Some((first, rest)) = values.split_first_chunk::<8>() else {
        return values.iter().fold(T::default(), |sum, value| sum + *value);
    };
    let mut sums = *first;
    let mut chunks = rest.chunks_exact(8);
    for chunk in &mut chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum = *sum + *value;
        }
    }
    let half_sum = |at: usize| (sums[at] + sums[at + 1]) + (sums[at + 2] + sums[at + 3]);
    let total = half_sum(0) + half_sum(4);
    chunks.remainder().iter().fold(total, |sum, value| sum + *value)
}

/// Roll, pitch and yaw of a unit quaternion (x, y, z, w), rad, as `pybullet.getEulerFromQuaternion`.
///
/// Like PyBullet this calls the C library's functions, so that the two agree on one machine whatever library that has.
pub(crate) fn euler([x, y, z, w]: [f64; 4]) -> [f64; 3] {
    use std::f64::consts::FRAC_PI_2;
    let sine = -2.0 * (x * z - w * y);
    if sine <= -0.99999 {
        return [0.0, -FRAC_PI_2, 2.0 * x.atan2(-y)];
    }
    if sine >= 0.99999 {
        return [0.0, FRAC_PI_2, 2.0 * (-x).atan2(y)];
    }
    let [xx, yy, zz, ww] = [x * x, y * y, z * z, w * w];
    let roll = (2.0 * (y * z + w * x)).atan2(ww - xx - yy + zz);
    let yaw = (2.0 * (x * y + w * z)).atan2(ww + xx - yy - zz);
    [roll, sine.asin(), yaw]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_round_as_numpy_does() {
        // One large value among ones shows the order of additions: 2^53 + 1 is lost, 2^53 + 2 is not.
        let large = 2.0_f64.powi(53);
        let in_order = [large, 1.0, 1.0, 1.0];
        assert_eq!(pairwise_sum(&in_order).to_bits(), large.to_bits());
        let mut values = [1.0; 11];
        values[0] = large;
        // The accumulators give ((2^53 + 1) + 2) + 4 = 2^53 + 6; of the remaining three, the first rounds that up to the
        // even 2^53 + 8, the others are lost. NumPy 1.26.4 agrees.
        assert_eq!(pairwise_sum(&values).to_bits(), (large + 8.0).to_bits());
    }

    #[test]
    fn angles_of_a_rotation_about_one_axis_are_that_axis_s() {
        for angle in [-1.5, -0.3, 0.0, 0.7, 1.4_f64] {
            let (sine, cosine) = (angle / 2.0).sin_cos();
            for axis in 0..3 {
                let mut quaternion = [0.0, 0.0, 0.0, cosine];
                quaternion[axis] = sine;
                let mut expected = [0.0; 3];
                expected[axis] = angle;
                for (found, expected) in euler(quaternion).into_iter().zip(expected) {
                    assert!(
                        (found - expected).abs() < 1e-14,
                        "{axis} {angle}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn looking_straight_up_or_down_leaves_roll_at_zero() {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        assert_eq!(
            euler([0.0, half, 0.0, half])[..2],
            [0.0, std::f64::consts::FRAC_PI_2]
        );
        assert_eq!(
            euler([0.0, -half, 0.0, half])[..2],
            [0.0, -std::f64::consts::FRAC_PI_2]
        );
    }
}
