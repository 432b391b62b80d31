"""Capture of PyTorch into programs, executors, kernels and traces.

What other parts call:

- `capture.capture_step(fn, lists)`: the `Program` of a pure function from lists of tensors to lists of tensors, cached on
  disk by content. `runs.training_program(preset, corpus)`, `runs.update_program(...)`, `runs.outer_program(...)` are the
  three programs of a run.
- `executor.Executor(program).run(lists, hook=None)`: the outputs, lists of tensors; bit-equal to `protocol.reference`. A
  hook `(node index, value) -> value` sees every node's value and may replace it.
- `trace.TorchTrace(program, lists, steps, tamper=None)`: answers the questions of a game (`protocol.trace.Trace`).
- `state_io`: lists of tensors to bytes, roots and safetensors files, and back, safe against hostile files.
- `ops`: operations that a captured module may call and PyTorch lacks.
"""
