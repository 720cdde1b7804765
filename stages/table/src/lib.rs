//! Artifacts as Arrow tables, and tables as Parquet files.
//!
//! * [`Table`]: one immutable record batch of the few types that tables are made of, with metadata; [`TableBuilder`]
//!   makes one from vectors.
//! * [`Table::content`]: the digest of schema and values that keys and audits use, whatever the encoding.
//! * [`read`], [`write()`], [`write_file`], [`write_from`], [`copy_verified`]: Parquet files and other files, hashed while they
//!   pass.
//! * [`Table::conform`]: a table of another program as what was declared. [`unite`]: several tables as one.
//! * [`demonstrations`]: the table of demonstrations as a typed value.
//!
//! Two digests: *content* is about values and moves with no library; *object* is about bytes and is what a file is
//! verified by.
//!
//! Invariant: nothing read here is trusted. A file that is cut short, altered or made to harm gives a [`TableError`],
//! never a panic, and no more memory than its stated limits.

mod builder;
mod columns;
mod conform;
mod content;
pub mod demonstrations;
mod error;
mod footer;
mod matrix;
mod normal;
mod pages;
mod read;
mod table;
mod thrift;
mod unite;
mod write;

pub use arrow_schema::Metadata;
pub use builder::TableBuilder;
pub use columns::Float32Rows;
pub use content::file_content;
pub use error::TableError;
pub use matrix::Matrix;
pub use read::{FILE_LIMIT, MEMORY_LIMIT, parse, read};
pub use table::{Table, UNIT};
pub use unite::{Member, unite};
pub use write::{Written, copy_verified, write, write_file, write_from};
