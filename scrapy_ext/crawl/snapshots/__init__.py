"""Snapshots: pages whose callback raised, kept with their screenshots."""
