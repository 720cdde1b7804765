//! Axes by position, and the points that selectors name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use provenir_api::Label;
use provenir_api::schema::nearest;

use crate::manifest::{Axis, AxisValue, Manifest, Report, Selector, Span, Spanned, clip, is_name, shortened};

/// Most axes of a manifest.
pub(super) const AXES: usize = 64;

/// A set of axes by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AxisSet(u64);

impl AxisSet {
    pub(super) fn insert(&mut self, axis: usize) {
        self.0 |= 1 << axis;
    }

    pub(super) fn remove(&mut self, axis: usize) {
        self.0 &= !(1 << axis);
    }

    pub(super) fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In the manifest's order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..AXES).filter(move |axis| self.contains(*axis))
    }
}

/// The axes of a manifest.
pub(super) struct Axes<'m> {
    pub(super) names: Vec<Arc<str>>,
    list: Vec<&'m Axis>,
    by_name: BTreeMap<&'m str, usize>,
    by_label: Vec<BTreeMap<&'m Label, usize>>,
    /// Whether axes may be lacking, because they could not be read.
    is_incomplete: bool,
}

impl<'m> Axes<'m> {
    pub(super) fn new(manifest: &'m Manifest, report: &mut Report) -> Self {
        if let Some((name, axis)) = manifest.axes.get_index(AXES) {
            let count = manifest.axes.len();
            report.error(
                axis.key,
                format!("{count} axes are more than the limit of {AXES} (`{name}` is the first beyond it)"),
            );
        }
        let taken = || manifest.axes.iter().take(AXES);
        Self {
            names: taken().map(|(name, _)| Arc::clone(name)).collect(),
            list: taken().map(|(_, axis)| axis).collect(),
            is_incomplete: manifest.lacks_axes || manifest.axes.len() > AXES,
            by_name: taken()
                .enumerate()
                .map(|(index, (name, _))| (&**name, index))
                .collect(),
            by_label: taken()
                .map(|(_, axis)| {
                    axis.values
                        .iter()
                        .enumerate()
                        .map(|(index, value)| (&value.label, index))
                        .collect()
                })
                .collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Where the axis' name is written.
    pub(super) fn key(&self, axis: usize) -> Span {
        self.list[axis].key
    }

    pub(super) fn values(&self, axis: usize) -> &'m [AxisValue] {
        &self.list[axis].values
    }

    /// Every label that the axis has.
    pub(super) fn labels(&self, axis: usize) -> impl Iterator<Item = Label> {
        self.list[axis].values.iter().map(|value| value.label.clone())
    }

    /// Labels that it has only where no profile and no command line replaces its values, or in another profile.
    pub(super) fn inactive(&self, axis: usize) -> impl Iterator<Item = Label> {
        self.list[axis].inactive.iter().cloned()
    }

    /// Whether a profile or the command line gave it its values.
    pub(super) fn is_replaced(&self, axis: usize) -> bool {
        self.list[axis].replaced
    }

    pub(super) fn name(&self, axis: usize) -> &Arc<str> {
        &self.names[axis]
    }

    /// The axis of that name; reports a name that is none.
    pub(super) fn find(&self, name: &str, span: Span, report: &mut Report) -> Option<usize> {
        self.find_beside(name, &[], span, report)
    }

    /// The same where other names are known, too.
    pub(super) fn find_beside(
        &self,
        name: &str,
        others: &[&str],
        span: Span,
        report: &mut Report,
    ) -> Option<usize> {
        let found = self.by_name.get(name).copied();
        found.or_else(|| {
            let misnamed = self.by_name.keys().copied().filter(|known| !is_name(known));
            if let Some(near) = nearest(name, misnamed) {
                report.follows();
                return self.by_name.get(near).copied();
            }
            if self.is_incomplete {
                report.follows();
                return None;
            }
            let known = self.by_name.keys().copied().chain(others.iter().copied());
            let near = nearest(name, known.clone()).is_some();
            let help = match report.suggest(name, known) {
                Some(help) if near => help,
                other => match (self.with_field(name), other) {
                    (Some(axis), _) => {
                        format!(
                            "it is a field of the values of `{axis}`: `${{{axis}.{}}}`",
                            clip(name)
                        )
                    }
                    (None, Some(help)) => help,
                    (None, None) => "the manifest declares no axes".to_owned(),
                },
            };
            report
                .unknown(span, format!("there is no axis `{}`", clip(name)))
                .help(help);
            None
        })
    }

    /// The axis whose values are tables with a field of that name.
    fn with_field(&self, name: &str) -> Option<&str> {
        let has = |value: &AxisValue| {
            value
                .node
                .as_table()
                .is_some_and(|table| table.contains_key(name))
        };
        let axis = self.list.iter().position(|axis| axis.values.iter().any(has))?;
        Some(&self.names[axis])
    }

    /// The axis of that name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The position of an axis' value.
    pub(super) fn position(&self, axis: usize, label: &Label) -> Option<usize> {
        self.by_label[axis].get(label).copied()
    }

    /// Whether the axis has that value where no profile and no command line replaces its values.
    pub(super) fn is_inactive(&self, axis: usize, label: &Label) -> bool {
        self.list[axis].inactive.contains(label)
    }

    /// Reports a value that an axis does not have.
    pub(super) fn no_such_value(&self, axis: usize, label: &Spanned<Label>, report: &mut Report) {
        let name = self.name(axis);
        let texts: Vec<String> = self
            .values(axis)
            .iter()
            .map(|value| value.label.to_string())
            .collect();
        let message = match &label.value {
            Label::Text(text) if label.value.as_number().is_none() && texts.contains(text) => {
                format!("axis `{name}` has the value {text}, but not the text \"{text}\"")
            }
            value => format!("axis `{name}` has no value `{value}`"),
        };
        let near = match &label.value {
            Label::Text(text) => report.suggest(text, texts.iter().map(String::as_str)),
            _ => None,
        };
        let help = near.unwrap_or_else(|| {
            if texts.is_empty() {
                "it has no values".to_owned()
            } else {
                format!("there is {}", shortened(texts.iter().map(String::as_str)))
            }
        });
        report.error(label.span, message).help(help);
    }

    /// Resolves the names and values of a selector; `None` where one is wrong, which is reported.
    pub(super) fn points(&self, selector: &Selector, report: &mut Report) -> Option<Points> {
        let mut points = Points {
            span: selector.span,
            axes: AxisSet::default(),
            values: Vec::new(),
        };
        let mut complete = true;
        for (name, labels) in &selector.axes {
            let Some(axis) = self.find(&name.value, name.span, report) else {
                complete = false;
                continue;
            };
            let mut values = BTreeSet::new();
            for label in labels {
                match self.position(axis, &label.value) {
                    Some(value) => {
                        values.insert(value);
                    }
                    None if self.is_inactive(axis, &label.value) => {}
                    None => {
                        self.no_such_value(axis, label, report);
                        complete = false;
                    }
                }
            }
            points.axes.insert(axis);
            points.values.push((axis, values));
        }
        complete.then_some(points)
    }
}

/// The points that a selector names.
pub(super) struct Points {
    pub(super) span: Span,
    pub(super) axes: AxisSet,
    values: Vec<(usize, BTreeSet<usize>)>,
}

impl Points {
    /// Whether they are none: the selector names values alone that an axis has in another profile, or without the command line.
    pub(super) fn is_empty(&self) -> bool {
        self.values.iter().any(|(_, values)| values.is_empty())
    }

    /// Whether a point is among them; `at` gives the position of its value of each axis that the selector names.
    pub(super) fn contain(&self, at: impl Fn(usize) -> usize) -> bool {
        self.values
            .iter()
            .all(|(axis, values)| values.contains(&at(*axis)))
    }
}
