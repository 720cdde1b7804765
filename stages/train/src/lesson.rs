use std::borrow::Cow;
use std::rc::Rc;

use provenir_execution::{Context, Failure, Inputs};
use provenir_kinds::train::TrainParameters;
use provenir_policy::Standardisation;
use provenir_table::demonstrations::Demonstrations;
use provenir_table::{Matrix, Table};
use tch::Device;

use crate::data::{Data, Fitted, standardisation, standardised};
use crate::run::failure;

/// What makes a [`Lesson`].
#[derive(Clone)]
pub(crate) struct Source {
    demos: Table,
    validation: Option<Table>,
    /// The least deviation of an observation that is standardised; nothing where none is.
    floor: Option<f64>,
}

impl Source {
    /// What a cell with these parameters was given.
    pub(crate) fn new(parameters: &TrainParameters, inputs: &Inputs) -> Result<Self, Failure> {
        Ok(Self {
            demos: inputs.one("demos")?.clone(),
            validation: inputs.optional("validation").cloned(),
            floor: parameters.standardize.then_some(parameters.standardize_floor),
        })
    }
}

/// What a policy learns from. Policies that were given the same tables, and standardise alike, have one in common: it is decoded,
/// standardised and loaded once.
pub(crate) struct Lesson {
    source: Source,
    pub(crate) demos: Demonstrations,
    pub(crate) validation: Option<Demonstrations>,
    /// How observations are standardised, where they are.
    fitted: Option<Fitted>,
}

impl Lesson {
    pub(crate) fn new(source: Source) -> Result<Self, Failure> {
        let demos = Demonstrations::from_table(&source.demos)?;
        if demos.rows() == 0 {
            return Err(Failure::stage("there are no demonstrations to learn from"));
        }
        Ok(Self {
            validation: validation(source.validation.as_ref(), &demos)?,
            fitted: source
                .floor
                .map(|floor| standardisation(&demos.observation, floor)),
            demos,
            source,
        })
    }

    /// Whether it is what that makes: sure where it says so.
    pub(crate) fn is_of(&self, source: &Source) -> bool {
        let validation = match (&self.source.validation, &source.validation) {
            (Some(own), Some(other)) => own.is_clone_of(other),
            (None, None) => true,
            _ => false,
        };
        let floors = |source: &Source| source.floor.map(f64::to_bits);
        validation && self.source.demos.is_clone_of(&source.demos) && floors(&self.source) == floors(source)
    }

    pub(crate) fn standardisation(&self) -> Option<&Standardisation> {
        self.fitted.as_ref().map(|fitted| &fitted.standardisation)
    }

    /// Says to a cell what is remarkable about its data.
    pub(crate) fn tell(&self, context: &Context<'_>) {
        if self.source.validation.is_some() && self.validation.is_none() {
            context.warn("the validation set is empty: there is no validation loss");
        }
        let Some(Fitted { constant, raised, .. }) = &self.fitted else {
            return;
        };
        let list = |columns: &[usize]| {
            columns
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        if !constant.is_empty() {
            context.warn(format!(
                "observations do not vary in columns {} (counted from 0): the policy learns nothing from them",
                list(constant)
            ));
        }
        if let Some(floor) = self.source.floor.filter(|_| !raised.is_empty()) {
            context.warn(format!(
                "observations hardly vary in columns {} (counted from 0): standardised with a deviation of {floor}, the \
                 `standardize_floor`",
                list(raised)
            ));
        }
    }

    /// Standardised as it is to be.
    fn observations<'d>(&self, set: &'d Demonstrations) -> Cow<'d, Matrix> {
        match self.standardisation() {
            Some(standardisation) => Cow::Owned(standardised(&set.observation, standardisation)),
            None => Cow::Borrowed(&set.observation),
        }
    }
}

/// The data sets that `set` takes from each policy's lesson, of different lessons alone; nothing where one has none.
pub(crate) fn load<'d>(
    lessons: &[&'d Rc<Lesson>],
    set: impl Fn(&'d Lesson) -> Option<&'d Demonstrations>,
    device: Device,
) -> Result<Option<Data>, Failure> {
    let mut different: Vec<&Rc<Lesson>> = Vec::new();
    let mut places = Vec::with_capacity(lessons.len());
    for lesson in lessons {
        let known = different.iter().position(|known| Rc::ptr_eq(known, lesson));
        places.push(known.unwrap_or(different.len()));
        if known.is_none() {
            different.push(lesson);
        }
    }
    let sets = different.iter().map(|lesson| Some((*lesson, set(lesson)?)));
    let Some(sets) = sets.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let observations: Vec<Cow<'_, Matrix>> = sets
        .iter()
        .map(|(lesson, set)| lesson.observations(set))
        .collect();
    let observations: Vec<&Matrix> = observations.iter().map(AsRef::as_ref).collect();
    let actions: Vec<&Matrix> = sets.iter().map(|(_, set)| &set.action).collect();
    Data::new(&observations, &actions, places, device)
        .map(Some)
        .map_err(failure)
}

/// The validation set, where one is wired that holds anything.
fn validation(table: Option<&Table>, demos: &Demonstrations) -> Result<Option<Demonstrations>, Failure> {
    let Some(table) = table else {
        return Ok(None);
    };
    let validation = Demonstrations::from_table(table)?;
    if validation.rows() == 0 {
        return Ok(None);
    }
    // What the widths follow from comes first: it says more than they do.
    if demos.about.environment != validation.about.environment {
        return Err(Failure::stage(format!(
            "the observations to learn from are of the environment `{}`, those to validate on of `{}`",
            demos.about.environment, validation.about.environment
        ))
        .help("wire both from demonstrations of one environment"));
    }
    if demos.about.time_feature != validation.about.time_feature {
        let (with, without) = if demos.about.time_feature {
            ("learn from (`demos`)", "validate on (`validation`)")
        } else {
            ("validate on (`validation`)", "learn from (`demos`)")
        };
        return Err(Failure::stage(format!(
            "the observations to {with} end with the time feature, those to {without} do not"
        ))
        .help(
            "wire both from demonstrations with the time feature, or both from demonstrations without it",
        ));
    }
    for (what, ours, theirs) in [
        ("observations", &demos.observation, &validation.observation),
        ("actions", &demos.action, &validation.action),
    ] {
        if ours.width() != theirs.width() {
            return Err(Failure::stage(format!(
                "the {what} to learn from have {} entries, those to validate on {}",
                ours.width(),
                theirs.width()
            ))
            .help("wire both from demonstrations of one environment"));
        }
    }
    Ok(Some(validation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::demonstrations;

    #[test]
    fn the_same_tables_make_one_lesson_and_equal_ones_do_not() {
        let table = || demonstrations(20, 3).into_table().unwrap();
        let source = |demos: &Table, validation: Option<&Table>, floor: Option<f64>| Source {
            demos: demos.clone(),
            validation: validation.cloned(),
            floor,
        };
        let (demos, others) = (table(), table());
        let own = source(&demos, Some(&others), Some(0.1));
        let lesson = Rc::new(Lesson::new(own.clone()).unwrap());
        assert!(lesson.is_of(&own));
        for other in [
            source(&others, Some(&others), Some(0.1)),
            source(&demos, Some(&demos), Some(0.1)),
            source(&demos, None, Some(0.1)),
            source(&demos, Some(&others), Some(0.2)),
            source(&demos, Some(&others), None),
        ] {
            assert!(!lesson.is_of(&other));
        }
        let other = Rc::new(Lesson::new(source(&others, None, None)).unwrap());
        let demos = |lessons: &[&Rc<Lesson>]| {
            let set = load(lessons, |lesson| Some(&lesson.demos), Device::Cpu);
            set.unwrap().unwrap()
        };
        let lessons = [&lesson, &other, &lesson, &lesson];
        let data = demos(&lessons);
        assert_eq!((data.members, data.sets.clone()), (4, vec![0, 1, 0, 0]));
        assert_eq!(data.observations.size()[0], 2 * 20);
        // Not all have a validation set.
        let validation = load(&lessons, |lesson| lesson.validation.as_ref(), Device::Cpu);
        assert!(validation.unwrap().is_none());
    }
}
