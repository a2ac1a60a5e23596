"""The index over the bundles, and import and sync, which fill it. Store brings SQLAlchemy in on first use."""
