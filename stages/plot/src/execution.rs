use provenir_api::FigureIdentity;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::plot::{Plot, PlotParameters};

use crate::figure::FigureError;
use crate::{compose, data, summary, to_png};

/// Draws tables as a figure.
pub struct PlotExecution;

impl Execution for PlotExecution {
    type Kind = Plot;

    fn execute(
        &self,
        parameters: &PlotParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let tables = inputs.many("table");
        let summary = summary::summarise(parameters, tables, context)?;
        let data = data::table(parameters, &summary)?;
        let identity = FigureIdentity {
            action_key: context.action_key().to_owned(),
            data: data.content(),
        };
        let figure = compose::figure(parameters, &summary, tables, identity);
        let missing = figure.missing_letters();
        if !missing.is_empty() {
            let letters: Vec<String> = missing.iter().map(|letter| format!("`{letter}`")).collect();
            context.warn(format!(
                "the figure's font has no letter for {}",
                letters.join(", ")
            ));
        }
        context.check_cancelled()?;
        let svg = figure.to_svg().map_err(|error| told(&error, parameters))?;
        context.check_cancelled()?;
        let png = to_png(&svg, parameters.dpi, &figure.identity)?;
        context.check_cancelled()?;
        let pdf = figure.to_pdf()?;
        context.info(format!(
            "{} points and {} reference lines in {} panels",
            summary.points.len(),
            summary.lines.len(),
            figure.panels.len()
        ));
        Ok(Outputs::new()
            .file("svg", FigureIdentity::seal(svg.into_bytes()))
            .file("png", FigureIdentity::seal(png))
            .file("pdf", FigureIdentity::seal(pdf))
            .table("data", data))
    }
}

/// What cannot be drawn, with the column that it comes from.
fn told(error: &FigureError, parameters: &PlotParameters) -> Failure {
    let (axis, is_scale) = match error {
        FigureError::NotPositive { axis, .. } => (*axis, true),
        FigureError::Unbounded { axis, .. } => (*axis, false),
        _ => return error.clone().into(),
    };
    let (letter, from) = match axis {
        "vertical" => (
            'y',
            format!(
                "what column `{}`, a reference line or `y_limits` gives",
                parameters.y
            ),
        ),
        _ => (
            'x',
            format!("a value of column `{}`, or of `x_limits`", parameters.x),
        ),
    };
    let scale = format!("set `{letter}_scale = \"linear\"`, or ");
    let scale = if is_scale { scale.as_str() } else { "" };
    Failure::stage(format!("{error}, {from}")).help(format!("{scale}select rows by `where`"))
}

impl From<FigureError> for Failure {
    fn from(error: FigureError) -> Self {
        let message = error.to_string();
        match error {
            FigureError::Bug(_) => Self::bug(message),
            FigureError::Empty | FigureError::Unbounded { .. } | FigureError::NotPositive { .. } => {
                Self::stage(message)
            }
            FigureError::TooManyLetters { .. } => Self::stage(message).help("draw fewer labels"),
            FigureError::TooSmall { .. } => {
                Self::stage(message).help("enlarge `size`, leave it out, or draw fewer panels")
            }
            FigureError::TooManyPixels { .. } => {
                Self::stage(message).help("lower `dpi`, or set a smaller `size`")
            }
        }
    }
}
