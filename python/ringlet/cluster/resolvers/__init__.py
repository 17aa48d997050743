"""Cluster resolvers: one file for each environment that describes a cluster."""
