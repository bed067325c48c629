"""Files: tables, model files and exports, written whole or not at all; progress bars; versions."""
