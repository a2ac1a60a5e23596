"""The markup of each part of a page, made from values; nothing here reads the store or calls Streamlit."""
