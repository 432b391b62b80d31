"""Several roles as one service: what its file says, the children that it keeps, and the systemd unit around it."""
