"""Pods of one member, by what they belong to: how many have a node, and why others are not ready."""
