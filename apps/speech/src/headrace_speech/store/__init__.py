"""Where audio files are entered."""
