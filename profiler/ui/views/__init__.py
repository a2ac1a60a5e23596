"""The markup of each part of a page, made from values; nothing here reads data or knows Streamlit."""
