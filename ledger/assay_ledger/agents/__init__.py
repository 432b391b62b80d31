"""The loop of every actor: actions, keeper tasks, games, journal, heartbeat."""
