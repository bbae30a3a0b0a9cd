//! DataFusion over one table.

use std::path::Path;

use anyhow::Context;
use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::answers::{Answers, QUERIES, Rows};

/// The answers to all queries.
pub fn ask(table: &Path, threads: usize) -> anyhow::Result<Answers> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build()?;
    runtime.block_on(async {
        let config = SessionConfig::new().with_target_partitions(threads);
        let context = SessionContext::new_with_config(config);
        let path = table.to_str().context("the table's path is no text")?;
        context.register_parquet("hours", path, ParquetReadOptions::default()).await?;
        let mut answers = Answers::new();
        for query in QUERIES {
            let batches = context.sql(query.sql).await?.collect().await?;
            let mut rows = Rows::new();
            for batch in &batches {
                let columns = batch.columns().iter().map(|column| cast(column, &DataType::Int64));
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                for row in 0..batch.num_rows() {
                    let value = |column: &std::sync::Arc<dyn Array>| {
                        let numbers = column.as_any().downcast_ref::<Int64Array>();
                        numbers.expect("it was cast").value(row)
                    };
                    rows.push(columns.iter().map(value).collect());
                }
            }
            answers.insert(query.name.to_owned(), rows);
        }
        Ok(answers)
    })
}
