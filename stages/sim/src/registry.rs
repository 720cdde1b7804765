use std::sync::LazyLock;

use thiserror::Error;

use crate::task::Task;

/// The built-in tasks.
pub const NAMES: [&str; 4] = ["hopper", "walker2d", "half-cheetah", "ant"];

static TASKS: LazyLock<[Task; NAMES.len()]> = LazyLock::new(|| {
    [
        include_str!("robots/hopper.toml"),
        include_str!("robots/walker2d.toml"),
        include_str!("robots/half-cheetah.toml"),
        include_str!("robots/ant.toml"),
    ]
    .map(|text| Task::parse(text).expect("built-in tasks are valid"))
});

/// A name that is not a task's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no environment `{0}`; the known ones are: {known}", known = NAMES.join(", "))]
pub struct UnknownTask(pub String);

impl Task {
    /// The built-in task of that name.
    pub fn named(name: &str) -> Result<&'static Self, UnknownTask> {
        TASKS
            .iter()
            .find(|task| task.name() == name)
            .ok_or_else(|| UnknownTask(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_task_and_another_is_an_error_that_lists_them() {
        for name in NAMES {
            assert_eq!(Task::named(name).unwrap().name(), name);
        }
        let error = Task::named("hoper").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no environment `hoper`; the known ones are: hopper, walker2d, half-cheetah, ant"
        );
    }
}
