"""Evaluate my memory: questions with known answers, asked of the real engine and of baselines."""
