"""A server of text by OpenAI's interface, whose every answer carries a signed statement."""
