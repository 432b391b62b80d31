"""The fused executor: nodes by native kernels, and chains of nodes block by block of rows that stay in cache.

`nodes.compile_node` turns one node into what `assay/engine/runtime/native/kernels/nodes.c` runs, or says why stock
torch must;
`plan.FusedPlan` orders a whole program into groups and places its values in memory.
"""
