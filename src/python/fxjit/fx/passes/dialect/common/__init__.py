"""Passes for any kind of operators."""
