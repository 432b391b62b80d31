"""Text from a trained language model, token by token, so that anybody finds the same tokens again."""
