"""The commands of `./hakmem`, one module each; cli.py reads their words."""
