"""The watchdog: reads a run and its store, needs no key, and says when somebody honest is about to lose."""
