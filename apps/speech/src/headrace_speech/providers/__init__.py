"""Who speaks: this machine, or any OpenAI-compatible service. The child process imports this too:
nothing heavy is loaded here.
"""
