//! Errors of queries. Each protocol maps the kinds of errors to its own codes.
//!
//! In: errors of DataFusion, Arrow, Parquet and the file system. Out: a [`QueryError`] with a readable message.

use std::time::Duration;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;

/// The reason why a query failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The query is wrong and would fail again. HTTP 400.
    #[error("{0}")]
    InvalidArgument(String),
    /// The query exceeds a limit: memory, rows, range. HTTP 400, Connect `resource_exhausted` or `invalid_argument`.
    #[error("{0}")]
    Limit(String),
    /// All slots of running queries are in use. The same query may succeed later. HTTP 503.
    #[error("{0}")]
    Busy(String),
    /// The time limit of the query passed. HTTP 504.
    #[error("the query exceeded its time limit of {}; shorten its time range, or raise sql.timeout in the server's \
        configuration", alluvium_base::duration::format(*.0))]
    Timeout(Duration),
    /// The client disconnected, or the program stops.
    #[error("the query was cancelled")]
    Cancelled,
    /// A bug or a disk failure. HTTP 500.
    #[error("{0}")]
    Internal(String),
}

impl QueryError {
    /// Creates an error of the kind [`QueryError::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    /// Creates an error of the kind [`QueryError::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        let root = error.find_root();
        if let DataFusionError::External(inner) = root
            && let Some(query_error) = inner.downcast_ref::<QueryError>()
        {
            return query_error.clone();
        }
        if let DataFusionError::ParquetError(inner) = root
            && let ParquetError::External(inner) = inner.as_ref()
            && let Some(query_error) = inner.downcast_ref::<QueryError>()
        {
            return query_error.clone();
        }
        let text = root.strip_backtrace();
        match root {
            DataFusionError::ResourcesExhausted(message) => {
                let first = message.lines().next().unwrap_or_default();
                if first.contains("raise sql.") {
                    Self::Limit(first.to_owned())
                } else {
                    Self::Limit(format!(
                        "the query exceeded its memory limit ({first}): select a shorter time range or fewer groups, \
                            or raise sql.max_query_memory or sql.max_memory in the server's configuration"
                    ))
                }
            }
            DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::Configuration(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Execution(_) => Self::InvalidArgument(text),
            DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
                ArrowError::OffsetOverflowError(_) => Self::Limit(
                    "a step of the query produces a column of more than 2 GiB: use shorter texts and lists".to_owned(),
                ),
                ArrowError::DivideByZero
                | ArrowError::ArithmeticOverflow(_)
                | ArrowError::CastError(_)
                | ArrowError::ParseError(_)
                | ArrowError::ComputeError(_)
                | ArrowError::InvalidArgumentError(_) => Self::InvalidArgument(text),
                _ => Self::Internal(text),
            },
            // DataFusion reports a pattern that does not compile as an internal error.
            DataFusionError::Internal(_) if text.contains("Regular expression did not compile") => {
                let end = text.find(".\n").unwrap_or(text.len());
                Self::InvalidArgument(text[..end].to_owned())
            }
            _ => Self::Internal(text),
        }
    }
}

impl From<QueryError> for DataFusionError {
    fn from(error: QueryError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

impl From<ArrowError> for QueryError {
    fn from(error: ArrowError) -> Self {
        Self::Internal(format!("cannot compute on record batches: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_ours_survives_the_way_through_datafusion() {
        let query_error = QueryError::Limit("too much".to_owned());
        let wrapped = DataFusionError::from(query_error.clone()).context("while scanning");
        assert_eq!(QueryError::from(wrapped), query_error);
    }

    #[test]
    fn a_time_limit_is_said_in_words() {
        let error = QueryError::Timeout(Duration::from_secs(90));
        assert_eq!(
            error.to_string(),
            "the query exceeded its time limit of 1m30s; shorten its time range, or raise sql.timeout in the server's \
                configuration"
        );
    }
}
