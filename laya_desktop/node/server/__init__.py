"""The HTTP face of the node: protocol, OpenAI and admin APIs, security. Runs on the node's loop."""
