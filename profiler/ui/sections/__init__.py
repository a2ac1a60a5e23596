"""Parts that pages share or that make a page too long: views and charts put on the page with Streamlit."""
