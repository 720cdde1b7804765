//! `export`: what others can read.
//!
//! * `policy`: policies as safetensors.
//! * `select`: what a person means by a run, a figure or a cell; `provenance`: where it came from, in the standards' formats.
//! * `write`: a whole file or folder, or none, and never over something else.

mod policy;
mod provenance;
mod select;
mod write;

use super::Edition;
use super::arguments::{ExportArguments, ExportFormat};
use super::error::{CommandError, Exit};

/// `export`.
pub(super) fn export(edition: &Edition, arguments: &ExportArguments) -> Result<Exit, CommandError> {
    let standard = match arguments.format {
        ExportFormat::Safetensors => {
            arguments.refuse_crate_options()?;
            return policy::export(edition, arguments);
        }
        ExportFormat::RoCrate => provenance::Standard::RoCrate,
        ExportFormat::Openlineage => provenance::Standard::OpenLineage,
        ExportFormat::Prov => provenance::Standard::Prov,
        ExportFormat::InToto => provenance::Standard::InToto,
    };
    if standard != provenance::Standard::RoCrate {
        arguments.refuse_crate_options()?;
    }
    if arguments.agent.is_given() {
        return Err(CommandError::request(
            "--env, --normalization, --activation and --time-feature are for Stable-Baselines3 archives, with --format safetensors",
        ));
    }
    provenance::export(edition, arguments, standard)
}

impl ExportArguments {
    fn refuse_crate_options(&self) -> Result<(), CommandError> {
        let option = match (self.without_data, &self.license) {
            (true, _) => "--without-data",
            (false, Some(_)) => "--license",
            (false, None) => return Ok(()),
        };
        Err(CommandError::request(format!(
            "{option} is for --format ro-crate"
        )))
    }
}
