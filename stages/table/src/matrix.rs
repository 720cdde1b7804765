use crate::TableError;

/// Rows of one width, stored one after another.
///
/// Invariant: the width is at least 1 and divides the number of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    width: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// Rows of this width; fails where the values do not make whole rows.
    pub fn new(width: usize, values: Vec<f32>) -> Result<Self, TableError> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(TableError::Invalid(format!(
                "{} values do not make rows of width {width}",
                values.len()
            )));
        }
        Ok(Self { width, values })
    }

    /// Number of values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    /// A row.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..][..self.width]
    }

    /// A row, to be changed.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.width..][..self.width]
    }

    /// All rows in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f32> {
        self.values.chunks_exact(self.width)
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, row by row, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// All values, row by row, without the width.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// The rows at these indices, in this order.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut values = Vec::with_capacity(rows.len() * self.width);
        for row in rows {
            values.extend_from_slice(self.row(*row));
        }
        Self {
            width: self.width,
            values,
        }
    }
}

impl<'a> IntoIterator for &'a Matrix {
    type Item = &'a [f32];
    type IntoIter = std::slice::ChunksExact<'a, f32>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
