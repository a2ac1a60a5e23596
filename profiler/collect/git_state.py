"""Which commit the sources are of, and other short answers of programs."""

from __future__ import annotations

import subprocess


def command_output(*command: str) -> str:
    """What a command prints, or nothing where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
