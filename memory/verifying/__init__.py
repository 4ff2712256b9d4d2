"""What `verify` looks at: one function a check, each of them reads and repairs nothing."""
