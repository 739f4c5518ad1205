"""Runs test programs many times on a loaded machine."""
