"""What is trained, in plain PyTorch: model, data, optimizer, inner and outer step.

Nothing here knows of programs or proofs. `step.TrainingStep` and `outer` are pure functions from lists of tensors to
lists of tensors; `engine.compiler.capture` turns them into programs, and stock PyTorch runs the very same code eagerly.
"""
