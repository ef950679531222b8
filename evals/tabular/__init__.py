"""Tables in files as the benchmarks read and write them: CSV by pandas, Parquet."""
