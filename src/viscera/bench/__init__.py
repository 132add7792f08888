"""Benchmarks: what a step costs, on which device, beside what the documents report and what we aim for."""
