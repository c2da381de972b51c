"""x"""

from headrace.cli.command import group

commands = group("x")
