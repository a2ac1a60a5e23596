"""Parts of pages, shared or too long for one file: they put views and charts on the page with Streamlit."""
