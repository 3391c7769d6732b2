"""What rows say: statistics, verdicts, summaries. Pure functions of result files."""
