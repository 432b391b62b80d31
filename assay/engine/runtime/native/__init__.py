"""Native kernels: C that computes what stock torch computes, with fewer passes over memory.

`build` compiles every C file beside this one into a unit of its own (`make setup` does), once per instruction set;
`library.native(unit)` loads the one that fits this machine, or says why there is none. Nothing here is needed: without
it every node runs by stock torch, on the same bits.
"""
