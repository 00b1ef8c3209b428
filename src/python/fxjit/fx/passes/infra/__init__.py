"""Frames that passes run in."""
