"""Choose the marginals to measure, from released scores alone: free. `chicle.measurements.desk` releases scores."""
