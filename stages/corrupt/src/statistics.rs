use provenir_table::Matrix;

/// The mean and the standard deviation of a column: that of the rows, not of a population that they are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// The moments of every column; all zero where there are no rows. Sums run in the order of `rows`, which is to be one that
/// does not depend on how the table is sorted.
pub(crate) fn moments(matrix: &Matrix, rows: &[usize]) -> Vec<Moments> {
    let count = rows.len().max(1) as f64;
    let mean = |value: &dyn Fn(&[f32]) -> f64| -> f64 {
        rows.iter().map(|row| value(matrix.row(*row))).sum::<f64>() / count
    };
    let column = |column: usize| {
        let middle = mean(&|row| f64::from(row[column]));
        let variance = mean(&|row| {
            let difference = f64::from(row[column]) - middle;
            difference * difference
        });
        Moments {
            mean: middle,
            deviation: variance.sqrt(),
        }
    };
    (0..matrix.width()).map(column).collect()
}

/// The least and the largest value of every column; (∞, −∞) where there are no rows.
pub(crate) fn ranges(matrix: &Matrix) -> Vec<(f32, f32)> {
    let mut ranges = vec![(f32::INFINITY, f32::NEG_INFINITY); matrix.width()];
    for row in matrix {
        for ((least, largest), value) in ranges.iter_mut().zip(row) {
            *least = least.min(*value);
            *largest = largest.max(*value);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_described_each_for_itself() {
        let matrix = Matrix::new(2, vec![1.0, -4.0, 3.0, -4.0, 8.0, -4.0]).unwrap();
        let found = moments(&matrix, &[2, 0, 1]);
        // (1, 3, 8): squared differences from 4 are 9, 1, 16.
        let expected = [(4.0, (26.0_f64 / 3.0).sqrt()), (-4.0, 0.0)];
        for (found, (mean, deviation)) in found.iter().zip(expected) {
            assert!((found.mean - mean).abs() < 1e-15 && (found.deviation - deviation).abs() < 1e-15);
        }
        assert_eq!(ranges(&matrix), [(1.0, 8.0), (-4.0, -4.0)]);
        let nothing = Matrix::new(2, Vec::new()).unwrap();
        assert!(
            moments(&nothing, &[])
                .iter()
                .all(|moments| moments.mean.abs() < 1e-300)
        );
    }
}
