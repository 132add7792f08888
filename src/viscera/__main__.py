"""`python -m viscera` is the command `viscera`."""

from viscera.cli import main

main()
