"""The web server: streams a session's snapshots to browsers and brings their hands back."""
