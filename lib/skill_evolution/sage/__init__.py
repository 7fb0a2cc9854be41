"""The skill-library agent (SAGE): worlds, the agent and its code skills, chains, rewards, metrics, and training.

Only `policies` and `training` import torch, transformers or trl when they are loaded.
"""
