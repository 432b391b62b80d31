"""Capture of PyTorch into programs, executors, kernels and traces.

What other parts call:

- `capture.capture(function, lists)`: the program of a pure function from lists of tensors to lists of tensors.
  `assay.training.programs` has the three programs of a run (training, update, outer), cached on disk.
- `executor.Executor(program).run(lists, hook=None)`: the outputs, lists of tensors; bit-equal to
  `protocol.program.reference`.
  A hook `(node, value) -> value` sees every node's value and may replace it. `repeat(lists, steps)` runs several steps.
- `trace.TorchTrace(program, lists, steps, tamper=None)`: answers the questions of a game
  (`protocol.program.trace.Trace`).
- `state_io`: lists of tensors to bytes and to roots, and back.
- `ops`: operations that a captured module may call and PyTorch lacks.
"""
