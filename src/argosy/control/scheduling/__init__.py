"""Inputs of scheduling: profiles, plugins behind HTTP and in processes, reservations, priorities.

`plan/scheduling` makes the decisions.
"""
