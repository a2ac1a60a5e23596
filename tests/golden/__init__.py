"""The documented JSON of every command that answers, kept to the byte."""
