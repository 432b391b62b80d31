"""Known answers and fuzzing: does this machine compute what the protocol says?"""
