"""The verifier: replays sampled intervals, attests to them and challenges what differs."""
