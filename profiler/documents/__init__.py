"""Every answer as a document, made once for the command line, the library, the dashboard and programs."""
