"""Tables in engines: Spark and Dask work on parts of a table, Polars and DuckDB stream it to this process.

No module here imports its engine before a table of that engine is given.
"""
