"""The ports at an OpenAI-compatible URL: one adapter each, over one client and one way to ask."""
