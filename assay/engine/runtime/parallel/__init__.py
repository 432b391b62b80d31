"""One program over several ranks or pieces: the same bits, however it is divided (docs/adr/0012)."""
